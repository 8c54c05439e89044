import { describe } from "../internal/Allowed.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { DeliveryLife, Lives, ProcessLife, Settling } from "../internal/Lives.ts"

/** Milliseconds that each settlement of interrupted messages has in a drain, unless the drain has taken too long. */
const grace = 1000

/** Minimum milliseconds before a drain cuts settlements off: the time of its handlers, twice. */
const longest = (drainTimeout: number): number => drainTimeout + Math.min(Math.max(drainTimeout, grace), 5000) - 100

/** Milliseconds that a codec may take if it never answers. */
const decoding = { good: 0, undecodable: 0, slowToDecode: 1000, neverDecoded: 60_000 }

/** Whether a delivery is still with its process at a moment, and nothing keeps it from being returned. */
const isKept = (lives: Lives, life: DeliveryLife, until: number): boolean => {
  const { arrived, attempt, back, copy, disconnected, runs, settlings } = life
  const entered = arrived?.entry.at ?? 0
  const mayDecode = decoding[copy.message.plan?.body ?? "good"]
  const isDecoding = life.process.clock.least(entered, lives.history[until]?.at ?? entered) < mayDecode
  // An uninterruptible handler also keeps the delivery that replaced its own.
  const all = [...runs, ...(attempt?.turns ?? []).map(({ run }) => run)]
  const isRunning = all.some(({ ended }) => ended === undefined || ended.index > until)
  return (
    isWork(lives, life) &&
    !isDecoding &&
    !isRunning &&
    arrived !== undefined &&
    arrived.index < until &&
    (disconnected < 0 || disconnected > until) &&
    (back === undefined || back.index > until) &&
    // A message that its daemon has forgotten cannot be returned.
    !(copy.gone?.entry.why === "forgotten" && copy.gone.index < until) &&
    // A lost lease may go unnoticed until the copy is with another process.
    copy.deliveries.findLast(({ handedOut }) => (handedOut?.index ?? 0) < until) === life &&
    settlings.length === 0 &&
    // A redelivery that arrived during its settlement is settled with it.
    attempt?.settlings.length === 0 &&
    attempt.prior?.settlings.some(({ answer }) => answer < 0 || answer > arrived.index) !== true
  )
}

/** Milliseconds for which a call may wait for its answer. */
const unanswered = 10_000

/**
 * Whether a call that hides messages met a fault while a process drained, or shortly before. While the extension of a lease has no answer, its
 * delivery is not settled; the client returns it when it closes, and tries that once.
 */
const isHindered = ({ history }: Lives, { drained, draining, name }: ProcessLife): boolean =>
  history
    .slice(0, drained?.index)
    .some(
      ({ at, ...each }) =>
        each._tag === "Fault" && each.site.includes(`${name} hide`) && at >= (draining?.entry.at ?? 0) - unanswered
    )

const isCutOff = ({ answer, at }: Settling, { clock }: ProcessLife, until: number, now: number): boolean =>
  (answer < 0 || answer > until) && clock.most(at, now) < grace

/** A drain returns what no handler has, and waits for the answers to what was decided. */
export const drain: Law = (lives) =>
  [...lives.processes.values()].flatMap((process) => {
    const { clock, deliveries, drained, draining, name, settlings, version } = process
    if (drained === undefined || draining === undefined) return []
    const { entry, index } = drained
    // A process that stood still could not return anything in time.
    const stood = process.frozen.some(({ entry: { at, until } }) => until > draining.entry.at && at < entry.at)
    const kept = stood || isHindered(lives, process) ? [] : deliveries.filter((life) => isKept(lives, life, index))
    const isOver = clock.most(draining.entry.at, entry.at) >= longest(version?.drainTimeout ?? 0)
    const asked = isOver ? [] : settlings.filter((each) => each.index < index)
    const cutOff = asked.filter((each) => isCutOff(each, process, index, entry.at))
    return [
      ...kept.map((life) => {
        const what = `${name} had drained, and a message that no handler had was still with it; expected its return.`
        return violation("drain", entry.at, of(life), what, [life.arrived?.index, draining.index, index])
      }),
      ...cutOff.map((each) => {
        const what = `${name} had drained before ${describe(each.asked)} was answered; expected it to wait for the answer.`
        return violation("drain", entry.at, of(each.of), what, [draining.index, each.index, index])
      })
    ]
  })
