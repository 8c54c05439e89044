/** Keeps the books of what comes later: when each was due, when it came, and that each came once. */
import type { Meter } from "../Meter.ts"
import { quantile } from "../statistics.ts"

/** One delay after the other, in milliseconds, from a list with commas. */
export const mixed = (delays: string): (() => number) => {
  const all = delays.split(",").map(Number)
  let turn = 0
  return () => all[turn++ % all.length]!
}

export const make = () => {
  const waiting = new Map<string, { readonly at: number; readonly group: string }>()
  const late = new Map<string, Array<number>>()
  let early = 0
  let unexpected = 0

  return {
    /** It is to come `delay` milliseconds from now. */
    due: (id: string, delay: number, group = ""): void => {
      waiting.set(id, { at: performance.now() + delay, group })
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
        const name = group === "" ? "" : `${group}: `
        meter.figure(`${name}late p50, ms`, quantile(values, 0.5))
        meter.figure(`${name}late p99, ms`, quantile(values, 0.99))
      }
      meter.figure("early", early)
      meter.figure("lost", waiting.size)
      meter.figure("unexpected", unexpected)
    }
  }
}
