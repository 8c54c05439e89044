import { isForever, type Version } from "../../Scenario.ts"
import type { Violation } from "../Violation.ts"
import { earlierIn } from "../internal/grouping.ts"
import { hasName, isKept, type Law, violation } from "../internal/law.ts"
import type { CopyLife, DeliveryLife, Lives, ProcessLife, Run, Seen } from "../internal/Lives.ts"
import { lateByClocks, rateRoom } from "../internal/timing.ts"

/** Milliseconds by which a due time may be later than the policy's: pauses of messages that wait for their broker. */
const late = 120_000

/** Milliseconds of the longest pause of a backoff. */
const longestPause = 120_000

/** The last moment at which a process took messages. */
const takenUntil = ({ end, processes }: Lives): number => {
  let until = 0
  for (const { draining, killed, version } of processes.values()) {
    const last = draining ?? killed ?? end
    if (version !== undefined && last !== undefined) until = Math.max(until, last.entry.at)
  }
  return until
}

/** When a delay is over for which a process keeps a message, because the broker has refused the copy that would wait. */
const keptUntil = ({ deliveries }: CopyLife): number | undefined => {
  const last = deliveries.at(-1)
  const settling = last?.back === undefined ? last?.settlings.at(-1) : undefined
  return settling?.fate === "rejected" ? settling.at + settling.asked.delay : undefined
}

/** Whether a message still waits for its time at the end of the world, by clocks that are behind. */
const isDueLater = (lives: Lives, copy: CopyLife, end: number): boolean => {
  const { backs, bound, gone, stored } = copy
  const kept = keptUntil(copy)
  const due = kept ?? backs.at(-1)?.entry.due ?? stored?.entry.due ?? 0
  if (gone !== undefined || bound === undefined) return false
  // A message without a delay has no time by which a clock could hold it.
  const until = bound.at + (bound.at > bound.since ? lateByClocks(lives, bound, end) : 0)
  // An nsqd with a short limit of delays delivers a message before its time, and a process then makes it wait again.
  return due <= end ? kept === undefined && due > end - late && until > end : due <= until + late
}

/** Whether the broker refuses each copy of a message. */
const isRefused = ({ scenario }: Lives, { message }: CopyLife): boolean =>
  scenario.refusals.some((each) => each.key === message.key && isForever(each))

/**
 * Whether a message is refused on RabbitMQ with another one, each time that both are written together: of a body that is too large,
 * the server names only the limit, and closes the channel.
 */
const isRefusedWithOther = ({ scenario }: Lives, { deliveries, gone }: CopyLife): boolean => {
  const last = deliveries.at(-1)?.settlings.findLast(({ fate }) => fate !== undefined)
  const isTooLarge = scenario.refusals.some((each) => each.reason === "BodyTooLarge" && isForever(each))
  return scenario.kind === "rabbitmq" && isTooLarge && gone === undefined && last?.fate === "rejected"
}

/** Why a copy has not ended; `undefined` if it has ended, or may wait. */
const heldBy = (lives: Lives, copy: CopyLife): string | undefined => {
  const { end, work } = lives
  const { backs, bound, deliveries, gone, stored } = copy
  if (end === undefined || gone !== undefined || stored === undefined || !work.has(stored.entry.queue)) return undefined
  if (isRefused(lives, copy) || isRefusedWithOther(lives, copy)) return undefined
  if (stored.entry.at > takenUntil(lives)) return undefined
  const last = deliveries.at(-1)
  if (last !== undefined && last.back === undefined) {
    if (isDueLater(lives, copy, end.entry.at)) return undefined
    return `is with ${last.process.name}${last.process.killed === undefined ? "" : ", which is dead"}`
  }
  const { due } = backs.at(-1)?.entry ?? stored.entry
  // An earlier message of its group holds it up while that waits.
  if ([copy, ...earlierIn(lives, copy, end.index)].some((each) => isDueLater(lives, each, end.entry.at)))
    return undefined
  if (due <= end.entry.at) return `waits in ${stored.entry.queue} since ${Math.round(due)} ms`
  if (bound === undefined) return undefined
  return `waits in ${stored.entry.queue} until ${Math.round(due)} ms, and was due at ${Math.round(bound.at)} ms`
}

const stuckCopies = (lives: Lives, { entry, index }: Seen<"End">): ReadonlyArray<Violation> =>
  [...lives.copies.values()].flatMap((copy) => {
    const held = heldBy(lives, copy)
    if (held === undefined) return []
    const { key } = copy.message
    const last = copy.deliveries.at(-1)
    const about = last === undefined ? { key } : { key, delivery: last.delivery, process: last.process.name }
    const shown = [copy.stored?.index, last?.handedOut?.index, last?.back?.index, last?.settlings.at(-1)?.index, index]
    return [violation("liveness", entry.at, about, `Copy ${copy.copy} ${held}; expected it to have ended.`, shown)]
  })

/** Whether a run may continue forever: one of its handlers never ends, and cannot be interrupted. */
const isEndless = ({ scenario }: Lives, { began, process }: Run): boolean =>
  began.entry.given.some(({ key }) =>
    scenario.sendings
      .find((each) => each.key === key)
      ?.runs.some(
        ({ stubborn, takes }) => takes === "forever" && (stubborn === true || process.version?.promise === true)
      )
  )

const openRuns = (lives: Lives, { entry, index }: Seen<"End">): ReadonlyArray<Violation> =>
  lives.runs.flatMap((run) => {
    const { began, ended, process } = run
    if (ended !== undefined || process.killed !== undefined || isEndless(lives, run)) return []
    const what = `${process.name} still runs a handler that began at ${Math.round(began.entry.at)} ms; expected it to have ended.`
    return [violation("liveness", entry.at, { process: process.name }, what, [began.index, index])]
  })

const isBetween = ({ arrived }: DeliveryLife, from: number, until: number): boolean =>
  arrived !== undefined && arrived.index > from && arrived.index < until

/** The deliveries that a process holds at a moment. One that the broker delivered twice counts once. */
const heldAt = (lives: Lives, { deliveries }: ProcessLife, until: number): ReadonlyArray<DeliveryLife> =>
  deliveries.filter(({ arrived, back, copy, disconnected, settlings }) => {
    if (arrived === undefined || arrived.index > until) return false
    if (
      hasName(lives, copy) &&
      deliveries.some((each) => each.copy === copy && isBetween(each, arrived.index, until))
    ) {
      return false
    }
    // A settlement in flight takes room, though its delivery is lost.
    if (settlings.some(({ answer, index }) => index < until && (answer < 0 || answer > until))) return true
    const isLost = (back !== undefined && back.index < until) || (disconnected >= 0 && disconnected < until)
    return !isLost && !settlings.some(({ answer, fate }) => (fate === "taken" || fate === "lost") && answer < until)
  })

/** The number of kept messages with which a process still takes as many others as without them. */
const spare = 100

/** Whether a process waits for the message that shows recovery: after a backoff, a suspect, a failed settlement. */
const isProbing = ({ deliveries, settlings, told }: ProcessLife, { maxAttempts }: Version): boolean => {
  const fate = settlings.findLast((each) => each.fate !== undefined)?.fate
  const isSuspect = deliveries.some(({ arrived }) => (arrived?.entry.attempts ?? 0) > maxAttempts)
  return (
    told.some(({ entry }) => entry.event === "BackoffEntered") ||
    isSuspect ||
    fate === "transient" ||
    fate === "unknown"
  )
}

/**
 * When the last pause of a process without credit can have begun: it ends automatically, and the probe after it, a run or a
 * settlement, may begin the next one without another change of credit.
 */
const pausedAt = (
  { history }: Lives,
  { runs, settlings }: ProcessLife,
  credit: Seen<"Credit">,
  until: number
): number => {
  const ends = [...runs.map(({ ended }) => ended?.index ?? -1), ...settlings.map(({ answer }) => answer)]
  const last = Math.max(credit.index, ...ends.filter((index) => index < until))
  return history[last]!.at
}

/** The number of pulls that wait at a moment. */
const waitingPulls = ({ pulls }: ProcessLife, until: number): number =>
  pulls.reduce((sum, { entry, index }) => (index < until ? sum + (entry._tag === "Pulling" ? 1 : -1) : sum), 0)

/** The messages that an idle process can take: all that fit, or those that its pulls or its rate limit allow. */
const ownOf = (process: ProcessLife, version: Version, until: Seen<"Draining"> | Seen<"End">): number => {
  const { batch, concurrency, prefetch, pull } = version
  const size = batch?.size ?? 1
  if (pull !== undefined) return Math.min(concurrency, waitingPulls(process, until.index)) * size
  return Math.min(concurrency * size + prefetch, rateRoom(process, version, until))
}

/** Credit that is incomplete when a process ends after the calm, or at the end of the world. */
const narrow = (lives: Lives, process: ProcessLife, { entry, index }: Seen<"End">): ReadonlyArray<Violation> => {
  const { calm } = lives
  const { credits, draining, frozen, killed, name, runs, version } = process
  const until = draining?.index ?? index
  if (version === undefined || calm === undefined || until < calm.index) return []
  const at = draining?.entry.at ?? entry.at
  // A process that stands still changes nothing.
  if (frozen.some((each) => each.index < until && each.entry.until > at)) return []
  const held = heldAt(lives, process, until)
  // Its current work may hold back its credit.
  const isBusy =
    runs.some(({ ended }) => ended === undefined || ended.index > until) || !held.every((each) => isKept(each, until))
  if ((killed !== undefined && killed.index < until) || isBusy) return []
  const last = credits.findLast((each) => each.index < until)
  const limit = last?.entry.limit ?? 0
  const whole = ownOf(process, version, draining ?? { entry, index }) + Math.min(held.length, spare)
  if (limit >= whole || (limit > 0 && isProbing(process, version))) return []
  if (
    last !== undefined &&
    limit === 0 &&
    process.clock.least(pausedAt(lives, process, last, until), at) <= longestPause
  )
    return []
  const what = `${name} ends with a credit of ${limit}; expected at least ${whole}.`
  return [violation("liveness", entry.at, { process: name }, what, [last?.index, draining?.index ?? index])]
}

/** Drains and operations that never ended. */
const unfinished = ({ history, processes }: Lives, { entry, index }: Seen<"End">): ReadonlyArray<Violation> => {
  const found: Array<Violation> = []
  for (const { drained, draining, killed, name } of processes.values()) {
    if (draining === undefined || drained !== undefined || killed !== undefined) continue
    const what = `${name} drains since ${Math.round(draining.entry.at)} ms; expected an end.`
    found.push(violation("liveness", entry.at, { process: name }, what, [draining.index, index]))
  }
  const open = new Map<number, number>()
  history.forEach((each, nth) => {
    if (each._tag === "Operates") open.set(each.operation, nth)
    if (each._tag === "Operated") open.delete(each.operation)
  })
  for (const nth of open.values()) {
    found.push(violation("liveness", entry.at, {}, "An operation has not ended; expected its answer.", [nth, index]))
  }
  return found
}

/** After the calm, everything ends. */
export const liveness: Law = (lives) => {
  const { calm, end, processes } = lives
  if (end === undefined || calm === undefined) return []
  const found = [
    ...stuckCopies(lives, end),
    ...openRuns(lives, end),
    ...[...processes.values()].flatMap((process) => narrow(lives, process, end)),
    ...unfinished(lives, end)
  ]
  if (end.entry.because === "rest" || found.length > 0) return found
  const mayWait = (copy: CopyLife): boolean => isDueLater(lives, copy, end.entry.at) || isRefusedWithOther(lives, copy)
  if ([...lives.copies.values()].some(mayWait)) return []
  return [
    violation("liveness", end.entry.at, {}, "The world did not come to rest; the history does not show why.", [
      end.index
    ])
  ]
}
