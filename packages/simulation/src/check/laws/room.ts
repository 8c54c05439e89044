import { familyOf, type Version } from "../../Scenario.ts"
import { namesakesOf } from "../internal/doubled.ts"
import { isKept, type Law, of, violation } from "../internal/law.ts"
import type { DeliveryLife, ProcessLife, Run, Seen } from "../internal/Lives.ts"
import { isTimedOut, rateRoom } from "../internal/timing.ts"
import type { Violation } from "../Violation.ts"

/** Whether a handler runs at a moment, though its time may be over: an uninterruptible one does. */
const isRunning = ({ began, ended }: Run, index: number): boolean =>
  began.index < index && !(ended !== undefined && ended.index < index)

/** Whether a run is active at a moment. */
const isOpen = (run: Run, index: number, at: number): boolean => isRunning(run, index) && !isTimedOut(run, at)

/**
 * Messages that a handler has at a moment, and messages with a handler or a settlement though their delivery is lost: these take
 * room, but no credit.
 */
const atWork = ({ deliveries }: ProcessLife, { entry, index }: Seen<"Credit">) => {
  const isBegun = ({ runs, settlings }: DeliveryLife): boolean =>
    runs.some((run) => isOpen(run, index, entry.at)) && !settlings.some((each) => each.index < index)
  const isSettling = ({ settlings }: DeliveryLife): boolean =>
    settlings.some((each) => each.index < index && (each.answer < 0 || each.answer > index))
  const isLost = ({ back, copy: { gone }, disconnected }: DeliveryLife): boolean =>
    (disconnected >= 0 && disconnected < index) ||
    (back !== undefined && back.index < index) ||
    // A message that its daemon has forgotten takes no credit, and a lease that cannot be renewed shows it.
    (gone?.entry.why === "forgotten" && gone.index < index)
  const isStillRunning = ({ runs }: DeliveryLife): boolean => runs.some((run) => isRunning(run, index))
  const lost = deliveries.filter((life) => isLost(life) && (isStillRunning(life) || isSettling(life))).length
  return { lost, begun: deliveries.filter((life) => isBegun(life) && !isLost(life)).length }
}

/** Whether a message is with its process at a moment: unsettled, or with a handler though its delivery is lost. */
const isHeld = (life: DeliveryLife, index: number, at: number): boolean => {
  const { arrived, back, copy, disconnected, runs, settlings } = life
  if (arrived === undefined || arrived.index > index) return false
  if (copy.gone !== undefined && copy.gone.index < index) return false
  const isGone = (disconnected >= 0 && disconnected < index) || (back !== undefined && back.index < index)
  if (!isGone) return !settlings.some(({ answer, fate }) => (fate === "taken" || fate === "lost") && answer < index)
  const isSettled = settlings.some((each) => each.index < index)
  return !isSettled && runs.some((run) => isOpen(run, index, at))
}

const fullOf = ({ batch, concurrency, prefetch }: Version): number => concurrency * (batch?.size ?? 1) + prefetch

/**
 * The messages that a process may have with a credit. Lost ones that handlers have take room beside the credit. A limit of the rate
 * keeps the credit below the consumer's room; messages whose settlement the broker has refused add to that room.
 */
const admitted = (
  { deliveries }: ProcessLife,
  version: Version,
  { entry: { at, limit }, index }: Seen<"Credit">
): number => {
  const isLost = ({ disconnected }: DeliveryLife): boolean => disconnected >= 0 && disconnected < index
  const lost = deliveries.filter((life) => isLost(life) && isHeld(life, index, at)).length
  const kept = deliveries.filter((life) => isHeld(life, index, at) && isKept(life, index)).length
  return version.rateLimit === undefined && kept === 0
    ? limit
    : Math.max(limit, Math.min(fullOf(version) + kept, limit + lost))
}

/**
 * Messages that are with a process when another one arrives never exceed its credit. With leases, one that has ended unnoticed
 * makes room.
 */
const crowded = (process: ProcessLife, version: Version): ReadonlyArray<Violation> => {
  const { credits, deliveries, name } = process
  // Otherwise the law of credit proves the same.
  if (!deliveries.some(({ disconnected, runs }) => disconnected >= 0 && runs.length > 0)) return []
  const limits = credits.map((credit) => ({ index: credit.index, limit: admitted(process, version, credit) }))
  return deliveries.flatMap((life) => {
    const { arrived, back, isEcho } = life
    if (arrived === undefined || isEcho || (back !== undefined && back.index < arrived.index)) return []
    const { entry, index } = arrived
    const limit = Math.max(0, ...limits.filter((each) => each.index < index).map((each) => each.limit))
    const held = deliveries.filter((each) => isHeld(each, index, entry.at) && !each.isEcho)
    // A redelivery replaces one that a handler still has, also if another process has replaced its copy meanwhile.
    const { size } = new Set(held.map(({ copy }) => Math.min(...[...namesakesOf(copy)].map((each) => each.copy))))
    if (size <= limit) return []
    const what = `${name} has ${size} messages, with those that handlers have of a lost connection; expected ${limit} at most.`
    return [violation("room", entry.at, of(life), what, [...held.map((each) => each.arrived?.index), index])]
  })
}

/** Credit that admits any message admits one in addition to those of running handlers. */
const narrow = (process: ProcessLife, version: Version): ReadonlyArray<Violation> => {
  const { credits, name } = process
  // A program that pulls has the credit that its pulls need.
  if (version.pull !== undefined) return []
  const full = fullOf(version)
  return credits.flatMap((credit) => {
    const { entry, index } = credit
    if (entry.limit === 0 || entry.limit >= full) return []
    const { begun, lost } = atWork(process, credit)
    const allowed = Math.min(full, begun + rateRoom(process, version, credit))
    if (entry.limit > begun || allowed - lost <= begun) return []
    const what = `${name} set a credit of ${entry.limit}, and handlers run with ${begun}; expected room for another.`
    return [violation("room", entry.at, { process: name }, what, [index])]
  })
}

/** Running handlers leave room for a probe, and a lost delivery takes room while a handler has it. */
export const room: Law = ({ processes, scenario }) =>
  [...processes.values()].flatMap((process) => {
    const { version } = process
    // If a lease ends unnoticed, the number of running handlers is unknown.
    if (version === undefined || ["lease", "store"].includes(familyOf(scenario))) return []
    return familyOf(scenario) === "push"
      ? [...narrow(process, version), ...crowded(process, version)]
      : narrow(process, version)
  })
