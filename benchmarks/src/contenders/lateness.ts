/** Records delayed messages: when each was due, when it arrived, and that each arrived once. */
import type { Meter } from "../Meter.ts"
import { quantile } from "../statistics.ts"

/** Delays in milliseconds, from a list with commas. */
export const list = (delays: string): ReadonlyArray<number> => delays.split(",").map(Number)

/** Returns for each message the delay after which it is redelivered, in rotation; or none. */
export const turns = (delays: ReadonlyArray<number>, failing: number): (() => number | undefined) => {
  let turn = 0
  return () => {
    const mine = turn++
    return mine % 100 < failing ? delays[mine % delays.length] : undefined
  }
}

export type Lateness = ReturnType<typeof make>

export const make = () => {
  const waiting = new Map<string, { readonly at: number; readonly group: string }>()
  const late = new Map<string, Array<number>>()
  let early = 0
  let unexpected = 0

  return {
    /** It is due `delay` milliseconds from now. */
    due: (id: string, delay: number): void => {
      waiting.set(id, { at: performance.now() + delay, group: `${delay} ms` })
    },
    came: (id: string): void => {
      const expected = waiting.get(id)
      if (expected === undefined) {
        unexpected++
        return
      }
      waiting.delete(id)
      const lateness = performance.now() - expected.at
      // The server's clock ticks in milliseconds.
      if (lateness < -1) early++
      const group = late.get(expected.group)
      if (group === undefined) late.set(expected.group, [lateness])
      else group.push(lateness)
    },
    report: (meter: Meter): void => {
      const all = [...late.values()].flat()
      for (const [group, values] of [...(late.size > 1 ? late : []), ["", all] as const]) {
        if (values.length === 0) continue
        if (group === "") meter.figure("late p50, ms", quantile(values, 0.5))
        meter.figure(`${group === "" ? "" : `${group}: `}late p99, ms`, quantile(values, 0.99))
      }
      meter.figure("early", early)
      meter.figure("lost", waiting.size)
      meter.figure("unexpected", unexpected)
    }
  }
}
