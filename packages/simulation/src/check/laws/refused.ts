import { describe } from "../internal/Allowed.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { Attempt, Settling } from "../internal/Lives.ts"

/** Whether a process has reported it. A foreign producer's message is reported by the broker's name, which is unknown here. */
const isQuarantined = ({ copy, process }: Attempt, until: number): boolean => {
  const { plan, sending } = copy.message
  return process.told.some(
    ({ entry, index }) =>
      index < until && entry.event === "Quarantined" && (plan?.by === "foreign" || entry.id === sending?.entry.id)
  )
}

/** Whether a process that ends requests it for the next delivery: it had abandoned the refused one. */
const isRepeatedAtEnd = (before: Settling, { attempt, index, of: life }: Settling): boolean => {
  const { draining } = attempt.process
  return draining !== undefined && draining.index < index && life !== before.of
}

/** A refused settlement is requested again only with a copy that leaves out more, without a copy, or from quarantine. */
export const refused: Law = (lives) =>
  lives.attempts.flatMap((attempt) => {
    if (!isWork(lives, attempt)) return []
    const { settlings } = attempt
    return settlings.flatMap((settling, nth) => {
      const before = settlings[nth - 1]
      if (before?.fate !== "rejected" || before.answer > settling.index) return []
      const { cut, tag } = settling.asked
      if (tag === "Release" || tag === "Retry" || cut > before.asked.cut) return []
      if (isQuarantined(attempt, settling.index) || isRepeatedAtEnd(before, settling)) return []
      const what = `${attempt.process.name} asked for ${describe(settling.asked)} again as it was refused; expected a smaller copy or quarantine.`
      return [violation("refused", settling.at, of(settling.of), what, [before.index, before.answer, settling.index])]
    })
  })
