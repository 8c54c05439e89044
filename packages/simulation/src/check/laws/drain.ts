import { describe } from "../internal/Allowed.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { DeliveryLife, Lives, ProcessLife, Settling } from "../internal/Lives.ts"

/** Milliseconds that each settlement of what a drain has interrupted has, unless the drain has taken too long. */
const grace = 1000

/** Milliseconds that a drain takes at least before it cuts settlements off: those of its handlers, and as long again. */
const longest = (drainTimeout: number): number => drainTimeout + Math.min(Math.max(drainTimeout, grace), 5000) - 100

/** Milliseconds that a codec may take, one that never answers until its time is over. */
const decoding = { good: 0, undecodable: 0, slowToDecode: 1000, neverDecoded: 60_000 }

/** Whether a delivery is still with its process at a moment, and nothing keeps it from being given back. */
const isKept = (lives: Lives, life: DeliveryLife, until: number): boolean => {
  const { arrived, attempt, back, copy, disconnected, runs, settlings } = life
  const entered = arrived?.entry.at ?? 0
  const mayDecode = decoding[copy.message.plan?.body ?? "good"]
  const isDecoding = life.process.clock.least(entered, lives.history[until]?.at ?? entered) < mayDecode
  // A handler that nothing can interrupt keeps what has taken the place of its delivery, too.
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
    // What its daemon has forgotten, nobody can give back.
    !(copy.gone?.entry.why === "forgotten" && copy.gone.index < until) &&
    // A lease that was lost may go unnoticed until the copy is with another process.
    copy.deliveries.findLast(({ handedOut }) => (handedOut?.index ?? 0) < until) === life &&
    settlings.length === 0 &&
    // What came again while it was settled is settled with it.
    attempt?.settlings.length === 0
  )
}

/**
 * Whether a call that hides messages met a fault while a process drained. As long as the extension of a lease has no answer,
 * its delivery is not settled; it is given back when the client closes, which tries that once.
 */
const isHindered = ({ history }: Lives, { drained, draining, name }: ProcessLife): boolean =>
  history
    .slice(draining?.index, drained?.index)
    .some((each) => each._tag === "Fault" && each.site.includes(`${name} hide`))

const isCutOff = ({ answer, at }: Settling, { clock }: ProcessLife, until: number, now: number): boolean =>
  (answer < 0 || answer > until) && clock.most(at, now) < grace

/** A drain gives back what no handler has, and waits for the answers to what was decided. */
export const drain: Law = (lives) =>
  [...lives.processes.values()].flatMap((process) => {
    const { clock, deliveries, drained, draining, name, settlings, version } = process
    if (drained === undefined || draining === undefined) return []
    const { entry, index } = drained
    // A process that stood still could give nothing back in time.
    const stood = process.frozen.some(({ entry: { at, until } }) => until > draining.entry.at && at < entry.at)
    const kept = stood || isHindered(lives, process) ? [] : deliveries.filter((life) => isKept(lives, life, index))
    const isOver = clock.most(draining.entry.at, entry.at) >= longest(version?.drainTimeout ?? 0)
    const asked = isOver ? [] : settlings.filter((each) => each.index < index)
    const cutOff = asked.filter((each) => isCutOff(each, process, index, entry.at))
    return [
      ...kept.map((life) => {
        const what = `${name} had drained, and a message that no handler had was still with it; expected it to be given back.`
        return violation("drain", entry.at, of(life), what, [life.arrived?.index, draining.index, index])
      }),
      ...cutOff.map((each) => {
        const what = `${name} had drained before ${describe(each.asked)} was answered; expected it to wait for the answer.`
        return violation("drain", entry.at, of(each.of), what, [draining.index, each.index, index])
      })
    ]
  })
