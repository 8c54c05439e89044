/** Clocks as the scenario has them: how far they may be from true time, and how fast its timers run. */
import type { Process } from "../../Scenario.ts"

/** The clocks of one process. Times are true milliseconds; results are on the safe side. */
export interface Clock {
  /** The most that its wall clock is ahead of true time between two moments; negative if it is behind. */
  readonly mostAhead: (from: number, to: number) => number
  /** The least that it is ahead. */
  readonly leastAhead: (from: number, to: number) => number
  /** The maximum milliseconds that its clocks may count between two moments. */
  readonly most: (from: number, to: number) => number
  /** The minimum that its timers may count. */
  readonly least: (from: number, to: number) => number
}

/** A clock with the true time. */
export const truth: Clock = {
  mostAhead: () => 0,
  leastAhead: () => 0,
  most: (from, to) => to - from,
  least: (from, to) => to - from
}

/** The clocks of a process, as they were planned. */
export const make = ({ jumps, offset, speed }: Process["clock"]): Clock => {
  if (offset === 0 && speed === 1 && jumps.length === 0) return truth

  /** How far jumps have moved it: at the beginning, and after each jump on the way. */
  const jumped = (from: number, to: number): ReadonlyArray<number> => {
    let sum = 0
    for (const { at, by } of jumps) if (at <= from) sum += by
    const sums = [sum]
    for (const { at, by } of jumps) if (at > from && at <= to) sums.push((sum += by))
    return sums
  }
  const drift = (to: number) => (speed - 1) * to
  return {
    mostAhead: (from, to) => offset + Math.max(drift(from), drift(to)) + Math.max(...jumped(from, to)),
    leastAhead: (from, to) => offset + Math.min(drift(from), drift(to)) + Math.min(...jumped(from, to)),
    most: (from, to) => {
      let forward = 0
      for (const { at, by } of jumps) if (at > from && at <= to) forward += Math.max(0, by)
      return (to - from) * speed + forward
    },
    least: (from, to) => (to - from) * speed
  }
}
