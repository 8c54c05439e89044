import { describe } from "../internal/Allowed.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { Settling } from "../internal/Lives.ts"
import { decidedAt, slack } from "../internal/timing.ts"

/** Whether a settlement that was decided before is asked again as it was; of a delay, what is left of it. */
const isSame = (first: Settling, next: Settling): boolean => {
  const { delay, queue, reason, tag } = first.asked
  const passed = next.attempt.process.clock.most(decidedAt(first), next.at)
  const { asked } = next
  return (
    asked.tag === tag &&
    asked.reason === reason &&
    asked.queue === queue &&
    asked.delay <= delay + 1 &&
    asked.delay >= Math.max(0, delay - passed) - 1
  )
}

/** Whether a settlement is that of a delivery which came while a retry was under way that may have been due. */
const isDue = ({ asked }: Settling, { attempt: { process, settlings }, of: { arrived } }: Settling): boolean =>
  arrived !== undefined &&
  settlings.some(
    (each) =>
      each.asked.tag === "Retry" &&
      each.index < arrived.index &&
      (each.answer < 0 || each.answer > arrived.index) &&
      process.clock.most(decidedAt(each), arrived.entry.at) >= asked.delay - slack
  )

/** Once decided, a settlement is asked again as it was. It gives way only where it was refused, or its process ends. */
export const repeated: Law = (lives) =>
  lives.attempts.flatMap((attempt) => {
    const { decided, process, settlings } = attempt
    // Where a codec takes its time, a redelivery is decoded for itself.
    const body = attempt.copy.message.plan?.body
    if (body === "neverDecoded" || body === "slowToDecode") return []
    if (decided === undefined || process.version === undefined || !isWork(lives, attempt)) return []
    return settlings.flatMap((settling) => {
      // The end of a dead letter or drop that came again while it was settled.
      const isEcho = settling.asked.tag === "Ack" && decided.asked.tag !== "Retry"
      if (isEcho && lives.scenario.kind === "lease") return []
      if (settling.index <= decided.index || isSame(decided, settling)) return []
      const isRefused = settlings.some(({ answer, fate }) => fate === "refused" && answer < settling.index)
      const isEnding = process.draining !== undefined && process.draining.index < settling.index
      if (settling.asked.tag === "Release" && decided.asked.tag !== "Ack" && (isRefused || isEnding)) return []
      // What comes when a retry is due, which may have been made, is another delivery, and may be one too many.
      if (settling.asked.reason === "too-many-deliveries" && isDue(decided, settling)) return []
      // Its copy is stored: the original may go.
      const isDone = attempt.copy.children.some(({ stored }) => stored !== undefined && stored.index < settling.index)
      if (settling.asked.tag === "Ack" && isDone) return []
      const what = `${process.name} asked for ${describe(settling.asked)}; expected ${describe(decided.asked)} again, which it had asked before.`
      return [
        violation("repeated", settling.at, of(settling.of), what, [decided.index, decided.answer, settling.index])
      ]
    })
  })
