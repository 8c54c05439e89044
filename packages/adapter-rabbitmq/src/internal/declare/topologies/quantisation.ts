/**
 * Quantisation: which delays the queues of a policy keep, so that a random delay needs no queue of its own.
 *
 * The rule. A delay is rounded up, never down: to the next rung, which is a queue with that TTL, or to the next multiple of a
 * step, which levels keep; whichever comes first. Rungs and levels together are at most `limit` queues. Delays without jitter are
 * late by less than the resolution, or there is no quantisation. So are those with jitter where the limit allows it. Otherwise, of
 * all ways to divide the queues into rungs and levels, the plan takes the one that spreads the retries best and delays them least.
 */
import { Backoff, Delay, RetryPolicy } from "@requeue/core/port"
import type { Settings } from "../../../RabbitMqOptions.ts"

/** The shortest and the longest delay of a retry, in milliseconds. */
export type Range = readonly [low: number, high: number]

/** The delays that a policy's queues keep. */
export interface Quantisation {
  /** The TTLs of the rungs, shortest first. */
  readonly rungs: ReadonlyArray<number>
  /** The lowest binary digit that has a level; `undefined` where there are no levels. */
  readonly lowest: number | undefined
  /** Milliseconds between the delays that the levels keep; `undefined` where there are no levels. */
  readonly step: number | undefined
}

/** The queues that a quantisation may use. */
export interface Room {
  /** The most queues. */
  readonly limit: number
  /** Milliseconds of the lowest level. */
  readonly resolution: number
  /** The number of levels that exist. */
  readonly digits: number
  /** Queues that levels need besides. */
  readonly extra: number
  readonly kinds: "rungs" | "levels" | "both"
}

/** The next round delay, at most a twentieth longer. Jittered delays are rounded up to it, so that policies share rungs. */
export const round = (delay: number): number => {
  const power = 10 ** Math.floor(Math.log10(delay))
  const step = Math.max(1, power / (delay < 2 * power ? 20 : delay < 5 * power ? 10 : 4))
  return Math.ceil(Math.ceil(delay / step) * step)
}

/** The most queues that `maxDelayQueues` can allow. */
export const most = 128

/** Different delays without jitter that a schedule does not list; where they are more than anybody can have queues for, some of them. */
const exactDelays = (backoff: Backoff.Backoff, maxAttempts: number): ReadonlyArray<Range> => {
  const found = new Set<number>()
  const end = Math.min(maxAttempts, 10 * RetryPolicy.scheduleLimit)
  let attempt = RetryPolicy.scheduleLimit
  for (; attempt < end && found.size <= most; attempt++) found.add(Backoff.range(backoff, attempt)[1])
  if (attempt < maxAttempts) found.add(Backoff.longest(backoff))
  return [...found].map((delay) => [delay, delay])
}

/** The retries that a schedule does not list, some hundred to a range. */
const unlisted = ({ backoff, maxAttempts }: RetryPolicy.RetryPolicy): ReadonlyArray<Range> => {
  if (backoff === undefined) return []
  const longest = Backoff.longest(backoff)
  const found: Array<Range> = []
  for (let first = RetryPolicy.scheduleLimit; first < maxAttempts && first < 2 ** 32; first *= 2) {
    const [low, high] = Backoff.range(backoff, first)
    if (low === high) return exactDelays(backoff, maxAttempts)
    found.push([low, Backoff.range(backoff, Math.min(2 * first, maxAttempts))[1]])
    if (high === longest) break
  }
  return found
}

/** The ranges of a policy's delays, each once. */
export const ranges = (retry: RetryPolicy.RetryPolicy): ReadonlyArray<Range> => {
  const listed = RetryPolicy.schedule(retry).map(({ delay }) => delay)
  const all = listed.length < RetryPolicy.scheduleLimit ? listed : [...listed, ...unlisted(retry)]
  return [...new Map(all.map((range) => [range.join(), range])).values()].filter(([, longest]) => longest > 0)
}

/** Whether some of these delays are drawn at random. */
export const isJittered = (all: ReadonlyArray<Range>): boolean => all.some(([low, high]) => low < high)

/** Whether a retry can have this delay. */
export const has = (all: ReadonlyArray<Range>, delay: number): boolean =>
  all.some(([low, high]) => low <= delay && delay <= high)

/** The most queues for the delays of a policy with jitter, and of another one, unless `maxDelayQueues` says otherwise. */
const defaultLimits = { jittered: 10, exact: 32 } as const

/** The most queues for these delays: the first of these limits that suffices. Delays without jitter may need the last. */
export const limitsOf = (
  all: ReadonlyArray<Range>,
  { maxDelayQueues }: Pick<Settings, "maxDelayQueues">
): ReadonlyArray<number> => {
  if (maxDelayQueues !== undefined) return [maxDelayQueues]
  return isJittered(all) ? [defaultLimits.jittered, defaultLimits.exact] : [defaultLimits.exact]
}

/** The rule for random delays, in words. */
export const notes = (
  all: ReadonlyArray<Range>,
  rungs: ReadonlyArray<number>,
  step?: number
): ReadonlyArray<string> => {
  const parts = [
    ...(step === undefined ? [] : [`to a multiple of ${Delay.format(step)}`]),
    ...(rungs.length === 0 ? [] : [`to ${rungs.map(Delay.format).join(", ")}`])
  ]
  return isJittered(all) ? [`random delays are rounded up ${parts.join(", or ")}, to use fewer queues`] : []
}

/** The delay that is kept for one that is asked for: as long, or longer. */
export const kept = ({ rungs, step }: Pick<Quantisation, "rungs" | "step">, delay: number): number =>
  Math.min(
    rungs.find((rung) => rung >= delay) ?? Number.POSITIVE_INFINITY,
    step === undefined ? Number.POSITIVE_INFINITY : Math.ceil(delay / step) * step
  )

/** The rungs that keep exactly every delay without jitter, and those with jitter rounded up; `undefined` for more than `limit`. */
export const fewRungs = (all: ReadonlyArray<Range>, limit: number): ReadonlyArray<number> | undefined => {
  const found = new Set<number>()
  for (const [low, high] of all) {
    if (low < high)
      for (let rung = round(Math.max(1, low)); rung < high && found.size <= limit; rung = round(rung + 1))
        found.add(rung)
    found.add(high)
  }
  return found.size > limit ? undefined : [...found].toSorted((a, b) => a - b)
}

/** Delays of a range that stand for all: each is as likely as the others. */
const draws = 20

const drawn = ([low, high]: Range): ReadonlyArray<number> =>
  Array.from({ length: draws }, (_, index) => low + ((index + 0.5) / draws) * (high - low))

/** The draws of a range that are kept for the same time, and of those the most. */
const largestGroup = (made: Pick<Quantisation, "rungs" | "step">, range: Range): ReadonlyArray<number> =>
  [...Map.groupBy(drawn(range), (delay) => kept(made, delay)).values()].reduce((a, b) => (b.length > a.length ? b : a))

/** A group of this share of the draws, or less, is not divided further. */
const spread = 1 / 10

/** Up to `count` rungs beside the levels of this step. `undefined` where a delay without jitter would be late. */
const rungsFor = (
  all: ReadonlyArray<Range>,
  step: number | undefined,
  count: number,
  resolution: number
): ReadonlyArray<number> | undefined => {
  const lateness = (rungs: ReadonlyArray<number>, delay: number): number => kept({ rungs, step }, delay) - delay
  const exact = new Set(all.flatMap(([low, high]) => (low === high ? [high] : [])))
  const longest = [...new Set(all.map(([, high]) => high))]
    .filter((high) => lateness([], high) >= resolution)
    .toSorted((a, b) => a - b)
  if (longest.filter((high) => exact.has(high)).length > count) return undefined
  let rungs = longest
  // The longest delay of each retry, without those that make the others the least late.
  while (rungs.length > count) {
    const costs = rungs.map((rung, index) => {
      const others = rungs.toSpliced(index, 1)
      return longest
        .filter((high) => high <= rung && high > (rungs[index - 1] ?? 0))
        .reduce((sum, high) => sum + (exact.has(high) ? Number.POSITIVE_INFINITY : lateness(others, high) / high), 0)
    })
    const least = Math.min(...costs)
    if (least === Number.POSITIVE_INFINITY) return undefined
    rungs = rungs.toSpliced(costs.indexOf(least), 1)
  }
  const wide = all.filter(([low, high]) => high - low >= resolution)
  while (rungs.length < count) {
    const groups = wide.map((range) => largestGroup({ rungs, step }, range))
    const largest = groups.reduce((a, b) => (b.length > a.length ? b : a), [])
    if (largest.length <= spread * draws) break
    const half = largest[Math.ceil(largest.length / 2) - 1]!
    const rung = round(half)
    rungs = [...rungs, rung < kept({ rungs, step }, half) ? rung : Math.ceil(half)].toSorted((a, b) => a - b)
  }
  return rungs
}

/** The ranges that stand for all: of many random ones the longest, and each that is shorter than the one before by a third. */
const samplesOf = (all: ReadonlyArray<Range>): ReadonlyArray<Range> => {
  const random = all.filter(([low, high]) => low < high).toSorted(([, a], [, b]) => b - a)
  if (random.length <= 20) return all
  const kept = random.reduce<ReadonlyArray<Range>>(
    (found, range) => (range[1] * 1.5 > (found.at(-1)?.[1] ?? Number.POSITIVE_INFINITY) ? found : [...found, range]),
    []
  )
  return [...all.filter(([low, high]) => low === high), ...kept]
}

/** How much worse it is that a retry lasts twice as long than that all messages arrive at the same time. */
const weight = 4

/** How bad a quantisation is: for each retry, the share of its messages that arrive together, and by how much it is late. */
const badness = (made: Quantisation, all: ReadonlyArray<Range>): number =>
  all.reduce(
    (sum, range) =>
      sum + largestGroup(made, range).length / draws + (weight * (kept(made, range[1]) - range[1])) / range[1],
    0
  )

/** The quantisation of these ranges, of which there is one at least; `undefined` where the queues are too few for it. */
export const make = (ranges: ReadonlyArray<Range>, room: Room): Quantisation | undefined => {
  const { digits, extra, kinds, limit, resolution } = room
  const all = samplesOf(ranges)
  const longest = Math.max(...all.map(([, high]) => high))
  const found: Array<Quantisation> = []
  for (let lowest = 0; kinds !== "rungs" && lowest < digits; lowest++) {
    const step = resolution * 2 ** lowest
    const levels = Math.floor(Math.log2(Math.ceil(longest / step))) + 1
    const count = limit - levels - extra
    if (count < 0 || lowest + levels > digits) continue
    const rungs = rungsFor(all, step, kinds === "levels" ? 0 : count, resolution)
    if (rungs === undefined) continue
    found.push({ rungs: lowest === 0 ? [] : rungs, lowest, step })
    if (lowest === 0) break
  }
  const rungs = kinds === "levels" ? undefined : rungsFor(all, undefined, limit, resolution)
  if (rungs !== undefined && found[0]?.lowest !== 0) found.push({ rungs, lowest: undefined, step: undefined })
  const scored = found.map((made) => ({ made, bad: badness(made, all) }))
  return scored.length === 0 ? undefined : scored.reduce((a, b) => (b.bad < a.bad ? b : a)).made
}
