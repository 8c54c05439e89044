import { isKept, type Law, violation } from "../internal/law.ts"
import type { ProcessLife, Settling } from "../internal/Lives.ts"

const moves = new Set(["Arrived", "Began", "Called", "Ended", "Asked", "Answered", "Credit", "Reconnected", "Started"])

/** Moves that end a stall whenever they happen. */
const starts = new Set(["Began", "Answered", "Started"])

/** Milliseconds without a move after which health reports a stall, beyond what handlers and batches may take. */
const minute = 60_000

/** Deliveries with a refused settlement, and none accepted: of several deliveries of one message, each may be refused. */
const refusedAt = ({ settlings }: ProcessLife, until: number): number => {
  const answered = settlings.filter(({ answer }) => answer >= 0 && answer < until)
  const ofFate = (wanted: Settling["fate"]) =>
    new Set(answered.filter(({ fate }) => fate === wanted).map(({ of }) => of))
  const taken = ofFate("taken")
  return [...ofFate("rejected")].filter((delivery) => !taken.has(delivery)).length
}

/** Whether a settlement of an arriving message is under way. */
const isSettling = ({ deliveries, settlings }: ProcessLife, index: number): boolean => {
  const copy = deliveries.find(({ arrived }) => arrived?.index === index)?.copy
  return settlings.some(
    (each) => each.of.copy === copy && each.index < index && (each.answer < 0 || each.answer > index)
  )
}

/**
 * Whether its process must know of a move: neither a message that arrives while a handler runs moves any of the others, nor one
 * that comes again while its settlement has no answer.
 */
const isSure = (tag: string, index: number, process: ProcessLife): boolean =>
  starts.has(tag) ||
  (tag === "Arrived" &&
    !isSettling(process, index) &&
    !process.runs.some(({ began, ended }) => began.index < index && (ended === undefined || ended.index > index)))

/**
 * Health is `stalled` if messages are there and nothing has moved for long, and not before. Messages that the broker refuses are
 * in quarantine.
 */
export const health: Law = ({ history, processes }) => {
  const moved = new Map<string, number>()
  const surelyMoved = new Map<string, number>()
  return history.flatMap((entry, index) => {
    if (moves.has(entry._tag) && "process" in entry && entry.process !== undefined) {
      moved.set(entry.process, index)
      const process = processes.get(entry.process)
      if (process !== undefined && isSure(entry._tag, index, process)) surelyMoved.set(entry.process, index)
    }
    if (entry._tag !== "Health") return []
    const process = processes.get(entry.process)
    const refused = process === undefined || entry.quarantined === 0 ? 0 : refusedAt(process, index)
    if (entry.quarantined > refused) {
      const what = `${entry.process} has ${entry.quarantined} messages in quarantine; expected ${refused} at most, as the broker refuses.`
      return [violation("health", entry.at, { process: entry.process }, what, [index])]
    }
    const last = moved.get(entry.process) ?? -1
    const since = history[last]?.at
    if (process?.version === undefined || since === undefined) return []
    const { batch, handlerTimeout, rateLimit } = process.version
    const limit = minute + handlerTimeout + (batch?.wait ?? 0) + (rateLimit?.per ?? 0)
    const isWaiting = () => process.attempts.some((each) => isKept(each, index))
    const isLoaded = entry.buffered + entry.inProgress > 0
    const stood = process.frozen.some(({ entry: { at, until } }) => until >= since && at <= entry.at)
    const isLong = !stood && process.clock.least(since, entry.at) > 2 * limit
    if (entry.state === "running" && entry.connection === "up" && isLoaded && isLong && !isWaiting()) {
      const what = `${entry.process} is running, with messages, though nothing has moved since ${Math.round(since)} ms; expected stalled.`
      return [violation("health", entry.at, { process: entry.process }, what, [last, index])]
    }
    const surely = entry.state === "stalled" ? (surelyMoved.get(entry.process) ?? -1) : -1
    const moment = history[surely]?.at
    if (moment !== undefined && process.clock.most(moment, entry.at) < minute) {
      const what = `${entry.process} is stalled though it moved at ${Math.round(moment)} ms; expected a minute without a move.`
      return [violation("health", entry.at, { process: entry.process }, what, [surely, index])]
    }
    return []
  })
}
