import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { DeliveryLife, Lives, ProcessLife, Seen } from "../internal/Lives.ts"
import { slack } from "../internal/timing.ts"
import type { Violation } from "../Violation.ts"

/** Milliseconds for which an extension, a gate or a timeout may hold up the return of a message. */
const grace = 30_000

/** Milliseconds by which timers may be late: each of them may round up. */
const timers = 10

/** A time in which no pull of a program waits. */
interface Idle {
  readonly since: Seen<"Pulled">
  readonly until: ProcessLife["pulls"][number] | undefined
}

const isBegin = (each: ProcessLife["pulls"][number]): each is Seen<"Pulling"> => each.entry._tag === "Pulling"

const idles = ({ pulls }: ProcessLife): ReadonlyArray<Idle> => {
  const open = new Set<number>()
  return pulls.flatMap((each, nth) => {
    if (isBegin(each)) {
      open.add(each.entry.pull)
      return []
    }
    open.delete(each.entry.pull)
    // None is open that could end next.
    return open.size === 0 ? [{ since: each, until: pulls[nth + 1] }] : []
  })
}

/** Waits that end too early, or too late. */
const untimely = ({ clock, draining, frozen, name, pulls, version }: ProcessLife): ReadonlyArray<Violation> => {
  const begins = new Map<number, Seen<"Pulling">>()
  return pulls.flatMap((each) => {
    if (isBegin(each)) {
      begins.set(each.entry.pull, each)
      return []
    }
    const { entry, index } = each
    const begun = begins.get(entry.pull)
    if (begun === undefined) return []
    const { at, wait } = begun.entry
    const about = { process: name }
    const isDraining = draining !== undefined && draining.index < index
    if (entry.why === "empty" && !isDraining && clock.most(at, entry.at) < wait - slack) {
      const what = `A pull of ${name} ended empty after ${Math.round(entry.at - at)} ms; expected it to wait for ${wait} ms.`
      return [violation("pulls", entry.at, about, what, [begun.index, index])]
    }
    const stood = frozen.some((each) => each.entry.until >= at && each.entry.at <= entry.at)
    const most = wait + (version?.batch?.wait ?? 0) + timers
    if (stood || clock.least(at, entry.at) <= most) return []
    const what = `A pull of ${name} waited for ${Math.round(entry.at - at)} ms; expected ${Math.round(most)} ms at most.`
    return [violation("pulls", entry.at, about, what, [begun.index, index])]
  })
}

/** Whether a process has a message at a moment that no run has begun, and that it has not returned. */
const isKept = (lives: Lives, { arrived, back, copy, disconnected, runs, settlings }: DeliveryLife, at: number) => {
  const isGone = (back !== undefined && back.entry.at <= at) || (copy.gone !== undefined && copy.gone.entry.at <= at)
  const isLost = disconnected >= 0 && (lives.history[disconnected]?.at ?? 0) <= at
  return (
    arrived !== undefined &&
    copy.message.plan?.body === "good" &&
    !isGone &&
    !isLost &&
    settlings.every((each) => each.at > at) &&
    runs.every(({ began }) => began.entry.at > at)
  )
}

/** Messages that stay with a program though no pull waits: other consumers cannot have them. */
const hoarded = (lives: Lives, process: ProcessLife): ReadonlyArray<Violation> => {
  const { deliveries, draining, killed, name } = process
  const last = Math.min(draining?.entry.at ?? Infinity, killed?.entry.at ?? Infinity, lives.end?.entry.at ?? Infinity)
  return idles(process).flatMap(({ since, until }) => {
    const due = Math.min(until?.entry.at ?? Infinity, last)
    return deliveries.flatMap((life) => {
      const began = Math.max(since.entry.at, life.arrived?.entry.at ?? Infinity)
      const isOlder = deliveries.some((each) => each !== life && each.copy === life.copy)
      if (due - began <= grace || isOlder || !isWork(lives, life) || !isKept(lives, life, began + grace)) return []
      const what = `${name} keeps a message though it pulls none since ${Math.round(since.entry.at)} ms; expected its return.`
      return [violation("pulls", began + grace, of(life), what, [since.index, life.arrived?.index])]
    })
  })
}

/** A pull waits as long as it may, and between pulls a program keeps no message that it has not begun. */
export const pulls: Law = (lives) =>
  [...lives.processes.values()].flatMap((process) =>
    process.version?.pull === undefined ? [] : [...untimely(process), ...hoarded(lives, process)]
  )
