import { describe } from "../internal/Allowed.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { Attempt } from "../internal/Lives.ts"

const isQuarantined = ({ copy, process }: Attempt, until: number): boolean =>
  process.told.some(
    ({ entry, index }) => index < until && entry.event === "Quarantined" && entry.id === copy.message.sending?.entry.id
  )

/** A refused settlement is asked again only with a copy that leaves out more, without a copy, or from quarantine. */
export const refused: Law = (lives) =>
  lives.attempts.flatMap((attempt) => {
    if (!isWork(lives, attempt)) return []
    const { settlings } = attempt
    return settlings.flatMap((settling, nth) => {
      const before = settlings[nth - 1]
      if (before?.fate !== "refused" || before.answer > settling.index) return []
      const { cut, tag } = settling.asked
      if (tag === "Release" || tag === "Retry" || cut > before.asked.cut) return []
      if (isQuarantined(attempt, settling.index)) return []
      const what = `${attempt.process.name} asked for ${describe(settling.asked)} again as it was refused; expected a smaller copy or quarantine.`
      return [violation("refused", settling.at, of(settling.of), what, [before.index, before.answer, settling.index])]
    })
  })
