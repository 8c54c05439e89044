/**
 * A rounding: the delays that some queues can keep, and how far they are from the delays that were drawn.
 *
 * Queues are rungs, which keep one delay each, and levels: a message waits in each level of its sum.
 */
import { Delay } from "@requeue/core/port"
import { isJittered, longest, type Range } from "./ranges.ts"

/** The TTLs of the queues, in milliseconds. */
export interface Rounding {
  /** The TTLs of the rungs, shortest first. */
  readonly rungs: ReadonlyArray<number>
  /** The TTLs of the levels, shortest first; each is longer than all before it together. */
  readonly levels: ReadonlyArray<number>
}

/** Returns the shortest sum of levels that is not shorter than the delay; `Infinity` if all of them together are shorter. */
export const sumOf = (levels: ReadonlyArray<number>, delay: number): number => {
  let rest = levels.reduce((sum, ttl) => sum + ttl, 0)
  if (rest < delay) return Number.POSITIVE_INFINITY
  let sum = 0
  for (let index = levels.length - 1; index >= 0; index--) {
    rest -= levels[index]!
    if (sum + rest < delay) sum += levels[index]!
  }
  return sum
}

/** Returns the time for which the queues keep a delay, which is never shorter; `Infinity` if they cannot keep it. */
export const kept = ({ levels, rungs }: Rounding, delay: number): number =>
  Math.min(rungs.find((rung) => rung >= delay) ?? Number.POSITIVE_INFINITY, sumOf(levels, delay))

/** How a rounding changes the delays of one retry. */
export interface Effect {
  /** Milliseconds by which a message is late at most. */
  readonly late: number
  /** The largest share of its messages, 0 to 1, that the queues keep for the same time. */
  readonly together: number
  /** The delays of these messages. */
  readonly group: Range
}

/**
 * The shortest delays that are rounded to the end of a gap: after each rung, after the sum of all levels, and after each sum of
 * all lower levels. All gaps of a level are equal, but a rung may shorten one, so the next gap after each rung counts too.
 */
const gaps = ({ levels, rungs }: Rounding, [low, high]: Range): ReadonlyArray<number> => {
  const starts = [low, ...rungs.filter((rung) => rung >= low && rung < high)]
  const sums = starts.flatMap((start) => {
    let lower = 0
    return levels.map((ttl, index) => {
      const sum = lower + (start > lower ? sumOf(levels.slice(index + 1), start - lower) : 0)
      lower += ttl
      return sum
    })
  })
  const total = levels.reduce((sum, ttl) => sum + ttl, 0)
  return [...rungs, total, ...sums].filter((end) => end >= low && end < high).map((end) => end + 1)
}

/** Returns the effect on the delays of a retry. */
export const effectOn = (rounding: Rounding, range: Range): Effect => {
  const [low, high] = range
  let late = 0
  let group: Range = [low, low]
  for (const first of [Math.max(1, low), ...gaps(rounding, range)]) {
    const until = kept(rounding, first)
    late = Math.max(late, until - first)
    const last = Math.min(until, high)
    if (last - first > group[1] - group[0]) group = [first, last]
  }
  return { late, together: low === high ? 0 : Math.min(1, (group[1] - group[0] + 1) / (high - low)), group }
}

/** Lateness is relative to the longest delay of a retry, or to this if it is shorter; so is a group. In milliseconds. */
const second = 1000

const relative = ({ late }: Effect, [, high]: Range): number => late / Math.max(high, second)

/** The retries with the longest delay count as much as so many others: in a long outage, most messages wait for them. */
const weight = 4

/** Returns how bad a rounding is. The squares make the worst retries count most. */
export const badness = (rounding: Rounding, all: ReadonlyArray<Range>): number => {
  const cap = longest(all)
  return all.reduce((sum, range) => {
    const effect = effectOn(rounding, range)
    const together = effect.together * Math.min(1, (range[1] - range[0]) / second)
    return sum + (range[1] === cap ? weight : 1) * (relative(effect, range) ** 2 + together ** 2)
  }, 0)
}

/** `check` reports a lateness beyond this share of the longest delay. */
const worthReporting = 0.1

/** Returns the worst lateness of a policy's retries in words; `undefined` if it is small. */
export const lateness = (rounding: Rounding, all: ReadonlyArray<Range>): string | undefined => {
  const found = all.map((range) => ({ range, effect: effectOn(rounding, range) }))
  const worst = found.reduce((a, b) => (relative(b.effect, b.range) > relative(a.effect, a.range) ? b : a))
  if (relative(worst.effect, worst.range) <= worthReporting) return undefined
  const cap = found.reduce((a, b) => (b.range[1] > a.range[1] ? b : a))
  const told = [...new Set([worst, cap])].map(({ effect, range: [, high] }, index) => {
    const share = `${Math.round((100 * effect.late) / high)} %`
    const subject =
      index === 0 ? `a retry of up to ${Delay.format(high)} is late` : `one of up to ${Delay.format(high)}`
    return `${subject} by up to ${Delay.format(effect.late)} (${share})`
  })
  return `random delays are rounded up: ${told.join(", ")}`
}

/** Returns the rule for random delays in words; none if there are none. */
export const notes = (rounding: Rounding, all: ReadonlyArray<Range>): ReadonlyArray<string> => {
  if (!isJittered(all)) return []
  const { levels, rungs } = rounding
  const [step = 0] = levels
  const isRegular = levels.every((ttl, index) => ttl === step * 2 ** index)
  const sums = isRegular
    ? `multiples of ${Delay.format(step)}`
    : `sums of some of ${levels.map(Delay.format).join(", ")}`
  const parts = [
    ...(levels.length === 0 ? [] : [sums]),
    ...(rungs.length === 0 ? [] : [rungs.map(Delay.format).join(", ")])
  ]
  return [
    lateness(rounding, all) ?? "random delays are rounded up by less than a tenth",
    `the queues of the policy keep ${parts.join(", or ")}`
  ]
}
