import { describe } from "../internal/Allowed.ts"
import { type Law, of, violation } from "../internal/law.ts"

/** No settlement of a delivery is requested after it was settled or lost, nor while an answer is outstanding. */
export const settleOnce: Law = ({ deliveries }) =>
  [...deliveries.values()].flatMap((life) =>
    life.settlings.flatMap((settling, nth) => {
      const before = life.settlings[nth - 1]
      if (before === undefined) return []
      const isAnswered = before.answer >= 0 && before.answer < settling.index
      if (isAnswered && before.fate !== "taken" && before.fate !== "lost") return []
      const state = isAnswered ? `was answered "${before.fate}"` : "had no answer yet"
      const what = `${life.process.name} asked for ${describe(settling.asked)} after ${describe(before.asked)} ${state}; expected nothing more.`
      return [violation("settle once", settling.at, of(life), what, [before.index, before.answer, settling.index])]
    })
  )
