/**
 * Quantisation: the few queues to which the random delays of a policy are rounded.
 *
 * The rule. A delay is rounded up, never down: to the next rung, which is a queue with that TTL, or to the next sum of levels,
 * whichever is shorter. Rungs and levels are at most `limit` queues. Delays without jitter are late by less than the resolution;
 * random ones too, where the limit allows it. Otherwise the policy uses the levels of some binary digits only, evenly spread and
 * closer for long delays. Of all such roundings, `Rounding.badness` chooses.
 */
import type { Settings } from "../../../RabbitMqOptions.ts"
import { isJittered, longest, type Range } from "./ranges.ts"
import { badness, type Effect, effectOn, kept, type Rounding } from "./rounding.ts"

/** The queues that a rounding may use. */
export interface Room {
  /** The most queues. */
  readonly limit: number
  /** Milliseconds of the lowest level. */
  readonly resolution: number
  /** The highest binary digit that has a level. */
  readonly highest: number
  /** Queues that levels need besides. */
  readonly extra: number
  readonly kinds: "rungs" | "levels" | "both"
}

/** Returns the next round delay, at most a twentieth longer. Policies share the rungs of round delays. */
export const round = (delay: number): number => {
  const power = 10 ** Math.floor(Math.log10(delay))
  const step = Math.max(1, power / (delay < 2 * power ? 20 : delay < 5 * power ? 10 : 4))
  return Math.ceil(Math.ceil(delay / step) * step)
}

/** The default of `maxDelayQueues`: for a policy with jitter, and for another one. */
const defaultLimits = { jittered: 10, exact: 32 } as const

/** The most queues for these delays: the first limit that suffices. Delays without jitter may need the last. */
export const limitsOf = (
  all: ReadonlyArray<Range>,
  { maxDelayQueues }: Pick<Settings, "maxDelayQueues">
): ReadonlyArray<number> => {
  if (maxDelayQueues !== undefined) return [maxDelayQueues]
  return isJittered(all) ? [defaultLimits.jittered, defaultLimits.exact] : [defaultLimits.exact]
}

/** The rungs of all delays, those of random delays a twentieth apart; `undefined` for more than `limit`. */
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

/** Delays without jitter, each once. */
const exactDelays = (all: ReadonlyArray<Range>): ReadonlyArray<number> => [
  ...new Set(all.flatMap(([low, high]) => (low === high ? [high] : [])))
]

/** A share of a retry's messages that is not divided further. */
const spreadEnough = 0.1

/** Up to `limit` rungs alone; `undefined` where a delay without jitter would be late. */
const ladder = (all: ReadonlyArray<Range>, { limit, resolution }: Room): Rounding | undefined => {
  const exact = new Set(exactDelays(all))
  if (exact.size > limit) return undefined
  const tops = [...new Set(all.map(([, high]) => high))].toSorted((a, b) => a - b)
  let rungs = tops
  // The longest delay of each retry, without those whose messages the next rung delays least.
  while (rungs.length > limit) {
    const costs = rungs.map((rung, index) => {
      const next = rungs[index + 1] ?? Number.POSITIVE_INFINITY
      return tops
        .filter((high) => high <= rung && high > (rungs[index - 1] ?? 0))
        .reduce((sum, high) => sum + (exact.has(high) ? Number.POSITIVE_INFINITY : (next - high) / high), 0)
    })
    const least = Math.min(...costs)
    if (least === Number.POSITIVE_INFINITY) return undefined
    rungs = rungs.toSpliced(costs.indexOf(least), 1)
  }
  const random = all.filter(([low, high]) => low < high)
  const none: Pick<Effect, "together" | "group"> = { together: 0, group: [0, 0] }
  while (rungs.length < limit) {
    const effects = random.map((range) => effectOn({ rungs, levels: [] }, range))
    const worst = effects.reduce((a, b) => (b.together > a.together ? b : a), none)
    const [first, last] = worst.group
    if (worst.together <= spreadEnough || last - first < resolution) break
    const middle = Math.ceil((first + last) / 2)
    rungs = [...rungs, round(middle) < last ? round(middle) : middle].toSorted((a, b) => a - b)
  }
  return { rungs, levels: [] }
}

/** `count` binary digits from `lowest` to `highest`, as even as can be, the closer ones at the top. */
const spread = (lowest: number, highest: number, count: number): ReadonlyArray<number> => {
  if (count === 1) return [highest]
  const step = Math.floor((highest - lowest) / (count - 1))
  const wider = highest - lowest - step * (count - 1)
  return Array.from({ length: count }, (_, index) => lowest + step * index + Math.min(index, wider))
}

/**
 * The rounding with these rungs and with levels from a lowest to a highest digit, as many as there is room for. Further rungs keep
 * what those levels cannot.
 */
const levelled = (
  all: ReadonlyArray<Range>,
  room: Room,
  [lowest, highest]: readonly [number, number],
  short: ReadonlyArray<number>
): Rounding | undefined => {
  const { extra, kinds, limit, resolution } = room
  const [exact, cap] = [exactDelays(all), longest(all)]
  for (let count = Math.min(limit - extra, highest - lowest + 1); count > 0; count--) {
    const levels = spread(lowest, highest, count).map((digit) => resolution * 2 ** digit)
    const lateBy = (delay: number): number => kept({ rungs: [], levels }, delay) - delay
    const late = new Set([...short, ...exact.filter((delay) => lateBy(delay) >= resolution)])
    if (lateBy(cap) === Number.POSITIVE_INFINITY) late.add(cap)
    const rungs = [...late].toSorted((a, b) => a - b)
    if (kinds === "levels" && rungs.length > 0) return undefined
    if (count + rungs.length + extra <= limit) return { rungs, levels }
  }
  return undefined
}

/** The most retries, the shortest ones, that have rungs besides the levels. */
const shortest = 3

/** The highest digit of the longest delay. */
const topOf = (all: ReadonlyArray<Range>, { resolution }: Room): number =>
  Math.floor(Math.log2(Math.ceil(longest(all) / resolution)))

/** Returns all roundings with levels. */
const allLevelled = (all: ReadonlyArray<Range>, room: Room): ReadonlyArray<Rounding> => {
  const top = topOf(all, room)
  const tops = [...new Set(all.map(([, high]) => high))].toSorted((a, b) => a - b).slice(0, shortest)
  const shorts = room.kinds === "levels" ? [[]] : [[], ...tops.map((_, index) => tops.slice(0, index + 1))]
  return [top, top + 1]
    .filter((highest) => highest <= room.highest)
    .flatMap((highest) => Array.from({ length: highest + 1 }, (_, lowest) => [lowest, highest] as const))
    .flatMap((digits) => shorts.flatMap((short) => levelled(all, room, digits, short) ?? []))
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

/** Returns the best rounding of these ranges, of which there is one at least; `undefined` if the limit is too small. */
export const make = (ranges: ReadonlyArray<Range>, room: Room): Rounding | undefined => {
  const all = samplesOf(ranges)
  const top = topOf(all, room)
  // Every delay within the resolution is better than any rounding.
  if (room.kinds !== "rungs" && top + 1 + room.extra <= room.limit) return levelled(all, room, [0, top], [])
  const found = [
    ...(room.kinds === "rungs" ? [] : allLevelled(all, room)),
    ...(room.kinds === "levels" ? [] : [ladder(all, room) ?? []].flat())
  ]
  const scored = found.map((rounding) => ({ rounding, bad: badness(rounding, all) }))
  return scored.length === 0 ? undefined : scored.reduce((a, b) => (b.bad < a.bad ? b : a)).rounding
}
