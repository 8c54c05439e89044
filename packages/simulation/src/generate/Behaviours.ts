/** Behaviours of handlers: in one run, and by tendency in all runs of a seed. */
import { type Behaviour, type Call, thrown } from "../Scenario.ts"
import type * as Draw from "../world/Draw.ts"

type Random = Draw.Sequence

const call = (random: Random): Call => {
  const name = random.pick(["ack", "retry", "fail"] as const)
  return {
    name,
    on: random.pick(["own", "own", "all"]),
    ...(random.chance(0.4) ? { delay: random.pick([0, 500, 5000, 60_000]) } : {}),
    ...(name === "fail" && random.chance(0.5) ? { error: random.pick(["permanent", "drop", "retryAfter"]) } : {})
  }
}

const calls = (random: Random, probability: number): ReadonlyArray<Call> | undefined =>
  random.chance(probability) ? Array.from({ length: random.whole(1, 3) }, () => call(random)) : undefined

/** The traits of a seed: what its handlers tend to do. */
export interface Mood {
  readonly fails: number
  readonly calls: number
  readonly slow: number
  readonly kills: number
  readonly hangs: number
}

/** The mood of a seed. */
export const mood = (random: Random, hasPeople: boolean): Mood => ({
  // Operators need dead letters to work with.
  fails: random.pick(hasPeople ? [0.5, 0.9] : [0, 0.2, 0.5, 0.9]),
  calls: random.pick([0, 0, 0.2, 0.6]),
  slow: random.pick([0, 0.2, 0.6]),
  kills: random.pick([0, 0, 0, 0.15]),
  hangs: random.pick([0, 0, 0, 0.1])
})

/** The behaviour of a handler in one run. */
export const behaviour = (random: Random, mood: Mood, handlerTimeout: number): Behaviour => {
  const hangs = random.chance(mood.hangs)
  const first = calls(random, mood.calls)
  const last = calls(random, mood.calls / 2)
  const late = calls(random, mood.calls / 3)
  const fails = random.chance(mood.fails)
  const takes = hangs
    ? "forever"
    : random.chance(mood.slow)
      ? random.pick([10, 300, 3000, Math.ceil(handlerTimeout * 0.9), Math.ceil(handlerTimeout * 1.5)])
      : 0
  return {
    takes,
    ...(takes !== "forever" && random.chance(0.1) ? { stubborn: true } : {}),
    ...(first === undefined ? {} : { first }),
    ...(last === undefined ? {} : { last }),
    ...(late === undefined ? {} : { late }),
    ...(fails ? { throws: random.pick(["error", "error", ...thrown]) } : {}),
    ...(random.chance(mood.kills) ? { kills: true } : {}),
    ...(random.chance(0.05) ? { meddles: true } : {})
  }
}
