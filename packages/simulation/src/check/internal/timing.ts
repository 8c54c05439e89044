/** When handler runs are over for the core, whether their handlers have ended or not; and by how much clocks shift due times. */
import { familyOf, type Version } from "../../Scenario.ts"
import type { Bound, Lives, ProcessLife, Run, Settling } from "./Lives.ts"

/** Whether the handler's time may be over at this moment: timers count on when the wall clock is set. */
export const isTimedOut = ({ began, process }: Run, at: number): boolean =>
  process.version !== undefined && process.clock.least(began.entry.at, at) > process.version.handlerTimeout - slack

/** Whether it must be over: a timer counts on while its process stands still, and fires after that. */
export const mustBeTimedOut = ({ began, process }: Run, at: number): boolean => {
  if (process.version === undefined) return false
  const stood = process.frozen.some(({ entry }) => entry.until >= began.entry.at && entry.at <= at)
  return !stood && process.clock.least(began.entry.at, at) > process.version.handlerTimeout + slack
}

/** Milliseconds between the records of two things that happened at one moment. */
export const slack = 1

/** Milliseconds before a rate limit allows a run at which its message may come. */
const ahead = 1000

/** The messages that the rate limit of a process allows soon, at least; `Infinity` without a limit. */
export const rateRoom = (
  { clock, runs }: ProcessLife,
  { batch, each, rateLimit }: Version,
  { entry: { at }, index }: { readonly entry: { readonly at: number }; readonly index: number }
): number => {
  if (rateLimit === undefined) return Infinity
  const window = rateLimit.per - ahead - (batch?.wait ?? 0)
  // The core counts a run before its handler begins, at the same moment.
  const isCounted = ({ began }: Run): boolean => began.index < index || began.entry.at === at
  const recent = runs.filter((run) => isCounted(run) && clock.least(run.began.entry.at, at) <= window + slack).length
  return Math.max(0, rateLimit.max - recent) * (each === true ? 1 : (batch?.size ?? 1))
}

/** The earliest moment at which a settlement may have been decided, to be requested later. */
export const decidedAt = ({ at, attempt, index }: Settling): number => {
  const run = attempt.turns.findLast((turn) => turn.run.began.index < index)?.run
  // A codec that exceeds its time is a separate failure.
  if (run === undefined) return attempt.deliveries[0]?.arrived?.entry.at ?? at
  const { began, calls, ended } = run
  const isByEnd = ended !== undefined && ended.index < index && calls.length === 0 && !isTimedOut(run, ended.entry.at)
  return isByEnd ? ended.entry.at : began.entry.at
}

/**
 * Milliseconds by which handlers may be late because the clocks of the writers and the waiting process differ, or have moved
 * since.
 */
export const lateByClocks = (
  { processes, scenario }: Lives,
  { measured = [], process, since }: Bound,
  at: number
): number => {
  const writers = [process, ...(familyOf(scenario) === "lossy" ? measured : [])].filter((each) => each !== undefined)
  const ahead = Math.max(0, ...writers.map(({ clock }) => clock.mostAhead(since, at)))
  const clocks = [...processes.values()].map(({ clock }) => clock)
  const behind = clocks.map((clock) => -clock.leastAhead(since, at))
  const moved = clocks.map((clock) => clock.mostAhead(since, at) - clock.leastAhead(since, at))
  return ahead + Math.max(0, ...behind) + Math.max(0, ...moved)
}
