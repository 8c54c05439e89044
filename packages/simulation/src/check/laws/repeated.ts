import { familyOf } from "../../Scenario.ts"
import { describe } from "../internal/Allowed.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { DeliveryLife, Lives, Settling } from "../internal/Lives.ts"
import { decidedAt, slack } from "../internal/timing.ts"

/** Whether an earlier settlement is requested again unchanged; of a delay, what is left of it. */
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

/**
 * Whether a settlement is of another delivery than the first, if the broker may deliver one while another is settled: of one that
 * arrived when the first one's retry was due, and is superfluous or returned; or of an earlier one that is returned, too late.
 */
const isOther = (first: Settling, { asked, attempt: { process }, of }: Settling, isBound: boolean): boolean => {
  const deliveries = of.copy.deliveries
  const isReturned = asked.tag === "Retry" || asked.tag === "Release"
  if (!isBound && isReturned && deliveries.indexOf(of) < deliveries.indexOf(first.of)) return true
  const mayFollow = asked.tag === "Release" || asked.reason === "too-many-deliveries"
  if (!mayFollow || first.asked.tag !== "Retry" || of === first.of || of.arrived === undefined) return false
  // After a lost connection, it is unknown whether the settlement was accepted.
  if (isBound && first.fate !== "taken") return false
  return process.clock.most(decidedAt(first), of.arrived.entry.at) >= first.asked.delay - slack
}

/**
 * Whether a redelivery is returned with a message of its group that its process has lost. It waited for that message, which had
 * arrived before it, so its decision was not requested again.
 */
const isReturnedWithGroup = ({ scenario }: Lives, { asked, index, of: life }: Settling): boolean => {
  const since = life.arrived?.index ?? index
  const isBetween = (at: number): boolean => at > since && at < index
  const isLost = ({ arrived, copy, disconnected, settlings }: DeliveryLife): boolean =>
    copy.message.plan?.group === life.copy.message.plan?.group &&
    (arrived?.index ?? Infinity) < since &&
    (isBetween(disconnected) || settlings.some(({ answer, fate }) => fate === "lost" && isBetween(answer)))
  const isFirst = life.settlings.every((each) => each.index >= index)
  return scenario.fifo !== undefined && asked.tag === "Release" && isFirst && life.process.deliveries.some(isLost)
}

/** A decided settlement is requested again unchanged. It changes only if it was refused, or its process ends. */
export const repeated: Law = (lives) =>
  lives.attempts.flatMap((attempt) => {
    const { decided, process, settlings } = attempt
    const { draining } = process
    // With a slow codec, a redelivery is decoded separately.
    const body = attempt.copy.message.plan?.body
    if (body === "neverDecoded" || body === "slowToDecode") return []
    if (decided === undefined || process.version === undefined || !isWork(lives, attempt)) return []
    return settlings.flatMap((settling) => {
      // The end of a dead letter or drop that was redelivered while it was settled.
      const isEcho = settling.asked.tag === "Ack" && decided.asked.tag !== "Retry"
      if (isEcho && familyOf(lives.scenario) !== "push") return []
      if (settling.index <= decided.index || isSame(decided, settling)) return []
      const isRefused = settlings.some(({ answer, fate }) => fate === "rejected" && answer < settling.index)
      // A dead letter that failed costs its budget again: if nothing is left, its process returns the message, and ends.
      const isExhausted = draining?.entry.because === "budget" && draining.entry.at === settling.at
      const isEnding = isExhausted || (draining !== undefined && draining.index < settling.index)
      if (settling.asked.tag === "Release" && decided.asked.tag !== "Ack" && (isRefused || isEnding)) return []
      if (isReturnedWithGroup(lives, settling)) return []
      if (isOther(decided, settling, familyOf(lives.scenario) === "push")) return []
      // Its copy is stored: the original may leave.
      const isDone = attempt.copy.children.some(({ stored }) => stored !== undefined && stored.index < settling.index)
      if (settling.asked.tag === "Ack" && isDone) return []
      const what = `${process.name} asked for ${describe(settling.asked)}; expected ${describe(decided.asked)} again, which it had asked before.`
      return [
        violation("repeated", settling.at, of(settling.of), what, [decided.index, decided.answer, settling.index])
      ]
    })
  })
