/** The world: true time, scheduled events, faults, and the shared history. */
import type { Fact, Entry } from "../History.ts"
import type { Rates, Scenario } from "../Scenario.ts"
import * as Activity from "./Activity.ts"
import * as Draw from "./Draw.ts"

/** A scheduled event. */
export interface Due {
  readonly at: number
  /** `undefined` once it has happened, or was cancelled. */
  run: (() => void) | undefined
}

/** One run's world. */
export interface World {
  /** True milliseconds since the world began. */
  readonly now: () => number
  /** Runs something at this true time, or now if that is past. Events of one moment happen in the order of these calls. */
  readonly at: (time: number, run: () => void) => Due
  /** Does so after this many milliseconds. What must keep an order uses {@link at}: a sum of delays is rounded. */
  readonly after: (delay: number, run: () => void) => Due
  readonly draw: Draw.Draw
  readonly activity: Activity.Activity
  readonly scenario: Scenario
  readonly history: Array<Entry>
  readonly record: (fact: Fact) => void
  /** Whether a fault of this kind happens at this place now. If so, it is recorded. */
  readonly fault: (kind: keyof Rates, place: string) => boolean
  /** Milliseconds of one way over the network. */
  readonly latency: (place: string) => number
  /** A new unique number. */
  readonly number: () => number
  readonly isCalm: () => boolean
  /** Runs the next event; false if nothing is due until this time. */
  readonly step: (until: number) => boolean
}

/** A world in which nothing is due. */
export const make = (scenario: Scenario): World => {
  const { calmAt, focus, latency, only, rates, seed } = scenario
  const draw = Draw.make(seed)
  const wanted = only && new Set(only)
  const history: Array<Entry> = []
  /** The latest event is first, so the next one is at the end. */
  const agenda: Array<Due> = []
  const seen = new Map<string, number>()
  let now = 0
  let last = 0

  const at = (time: number, run: () => void): Due => {
    const due: Due = { at: Math.max(now, time), run }
    let low = 0
    let high = agenda.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (agenda[middle]!.at <= due.at) high = middle
      else low = middle + 1
    }
    agenda.splice(low, 0, due)
    return due
  }

  const record = (fact: Fact): void => void history.push(Object.assign(fact, { at: now }))

  /** Places are counted per kind, so a fault keeps its name when others are left out. */
  const fault = (kind: keyof Rates, place: string): boolean => {
    if (now >= calmAt || (rates[kind] === 0 && wanted === undefined)) return false
    const at = `${kind} ${place}`
    const nth = (seen.get(at) ?? 0) + 1
    seen.set(at, nth)
    const site = `${at} ${nth}`
    const isMeant = focus === undefined || place.includes(focus)
    const happens = wanted === undefined ? isMeant && draw.chance(at, rates[kind]) : wanted.has(site)
    if (happens) record({ _tag: "Fault", site, kind })
    return happens
  }

  return {
    now: () => now,
    at,
    after: (delay, run) => at(now + Math.max(0, delay), run),
    draw,
    activity: Activity.make(),
    scenario,
    history,
    record,
    fault,
    latency: (place) => draw.between(place, 0.1, latency),
    number: () => ++last,
    isCalm: () => now >= calmAt,
    step: (until) => {
      let next = agenda.pop()
      while (next !== undefined && next.run === undefined) next = agenda.pop()
      if (next === undefined) return false
      if (next.at > until) {
        agenda.push(next)
        return false
      }
      now = next.at
      const { run } = next
      next.run = undefined
      run!()
      return true
    }
  }
}
