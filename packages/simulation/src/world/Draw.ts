/**
 * Draws: random numbers that depend only on the seed and on the place that requests them. Leaving out one event of a scenario
 * changes no other draw, which allows shrinking.
 */

/** Draws of one seed. A place that asks again receives other numbers. */
export interface Draw {
  /** A number from 0 to below 1. */
  readonly unit: (place: string) => number
  /** Whether an event with this probability happens. */
  readonly chance: (place: string, probability: number) => boolean
  /** A number from `low` to below `high`. */
  readonly between: (place: string, low: number, high: number) => number
}

const hash = (seed: number, place: string): number => {
  let h = seed | 0
  for (let i = 0; i < place.length; i++) h = Math.imul(h ^ place.charCodeAt(i), 0x01000193)
  return h
}

/** A number from 0 to below 1, from 32 mixed bits. */
const mixed = (bits: number): number => {
  let h = bits
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return ((h ^ (h >>> 16)) >>> 0) / 2 ** 32
}

/** The draws of a seed. */
export const make = (seed: number): Draw => {
  const asked = new Map<string, number>()
  const unit = (place: string): number => {
    const nth = (asked.get(place) ?? 0) + 1
    asked.set(place, nth)
    return mixed(Math.imul(hash(seed, place), 0x9e3779b1) + Math.imul(nth, 0x7f4a7c15))
  }
  return {
    unit,
    chance: (place, probability) => probability > 0 && unit(place) < probability,
    between: (place, low, high) => low + unit(place) * (high - low)
  }
}

/** Random numbers one after the other. */
export interface Sequence {
  readonly unit: () => number
  readonly chance: (probability: number) => boolean
  /** A whole number, both ends included. */
  readonly whole: (low: number, high: number) => number
  readonly pick: <A>(of: ReadonlyArray<A>) => A
}

/** The numbers of a seed, in order. */
export const sequence = (seed: number): Sequence => {
  let state = Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995
  const unit = () => mixed((state = (state + 0x6d2b79f5) | 0))
  const whole = (low: number, high: number) => low + Math.floor(unit() * (high - low + 1))
  return { unit, chance: (probability) => unit() < probability, whole, pick: (of) => of[whole(0, of.length - 1)]! }
}
