/**
 * Makes a scenario from a seed. Most seeds have few kinds of faults, and have them often: faults that are rare everywhere never
 * meet.
 */
import {
  familyOf,
  type Kind,
  kinds,
  type Operation,
  type Process,
  type Rates,
  type Refusal,
  type Scenario,
  type Sending,
  type Version
} from "./Scenario.ts"
import { behaviour, type Mood, mood } from "./generate/Behaviours.ts"
import * as Programs from "./generate/Programs.ts"
import * as RabbitMq from "./generate/RabbitMq.ts"
import * as Sqlite from "./generate/Sqlite.ts"
import * as Twists from "./generate/Twists.ts"
import * as Draw from "./world/Draw.ts"

type Random = Draw.Sequence

/** Metadata that none of our clients writes. */
const hostile = (random: Random, id: string): string =>
  random.pick([
    JSON.stringify({ v: 1, id, a: 0.5, t0: 1 }),
    JSON.stringify({ v: 1, id, a: 2, t0: 1_893_456_000_000 }),
    JSON.stringify({ v: 1, id, a: 0, t0: 1_893_456_000_000, nb: 1e300 }),
    JSON.stringify({ v: 1, id, a: -3, t0: -1, rd: "many", h: [[1, 2]], c: 9 }),
    JSON.stringify({ v: 1, id: "", a: 0, t0: 0 }),
    JSON.stringify({ v: 2, id, a: 1, t0: 1 }),
    "{"
  ])

const version = (random: Random, lease: number, hasPeople: boolean): Version => {
  const maxAttempts = random.pick(hasPeople ? [1, 1, 2] : [1, 1, 2, 3, 4])
  const handlerTimeout = random.pick([1000, 10_000, 60_000])
  return {
    maxAttempts,
    maxDeliveries: maxAttempts + random.pick([0, 3, 10, 10, 10]),
    immediate: random.pick([0, 0, 0, 1, 2]),
    backoff: random.pick([[], [], [0], [1000], [1000], [500, 5000, 60_000], [500, 5000, 60_000], [1_200_000]]),
    maxAge: random.chance(0.1) ? random.pick([5000, 60_000, 3_600_000]) : undefined,
    deadLetter: random.chance(0.1) ? undefined : "work.dlq",
    concurrency: random.pick([1, 1, 2, 5, 10]),
    prefetch: random.pick([0, 1, 5, 10]),
    batch: random.chance(0.4) ? { size: random.whole(1, 5), wait: random.pick([0, 100, 2000]) } : undefined,
    handlerTimeout: lease === 0 ? handlerTimeout : Math.min(handlerTimeout, lease * 5),
    drainTimeout: random.pick([0, 1000, 30_000]),
    consumerBackoff: random.chance(0.3)
      ? { multiplier: random.pick([100, 1000]), max: random.pick([1000, 30_000]), stepwise: random.chance(0.5) }
      : undefined,
    ...(random.chance(0.3) ? { promise: true } : {}),
    hook: random.pick(["none", "none", "none", "throws", "throwsUnprintable"]),
    redact: random.pick(["none", "none", "none", "throws"])
  }
}

const process = (random: Random, name: string, versions: number, isWild: boolean, clocks: boolean): Process => ({
  name,
  versions: random.chance(0.5) ? [0] : Array.from({ length: 3 }, () => random.whole(0, versions - 1)),
  startsAt: random.pick([0, 0, 500, 5000]),
  lives: isWild
    ? Array.from({ length: random.whole(1, 4) }, () => ({
        lasts: random.pick([100, 700, 3000, 10_000]),
        ends: random.pick(["kill", "drain"] as const),
        away: random.pick([100, 1000, 15_000])
      }))
    : [],
  freezes: isWild && random.chance(0.3) ? [{ at: random.whole(0, 20_000), for: random.pick([500, 8000, 60_000]) }] : [],
  clock: {
    offset: clocks ? random.pick([0, 5000, -5000, 7_200_000, -7_200_000]) : 0,
    speed: clocks ? random.pick([1, 1.01, 0.99]) : 1,
    jumps:
      clocks && random.chance(0.3) ? [{ at: random.whole(0, 20_000), by: random.pick([3_600_000, -3_600_000]) }] : []
  }
})

/** Parts of the exchange: faults may be limited to one of them. */
const focuses: ReadonlyArray<string> = ["consume", "receive", "publish", "send"]

/** Faults that are limited to some places happen there often. */
const rates = (random: Random, isFocused: boolean): Rates => {
  const some = () =>
    random.chance(isFocused ? 0.5 : 0.25) ? random.pick(isFocused ? [0.05, 0.2, 0.4] : [0.01, 0.05, 0.2]) : 0
  return {
    cut: some(),
    lostAnswer: some(),
    lostRequest: some(),
    late: some(),
    twice: some(),
    busy: some(),
    echo: some()
  }
}

/** Operators deal with dead letters first. */
const operation = (random: Random, calmAt: number, isFirst: boolean): Operation => {
  const letters = "work.dlq"
  const odd = random.chance(0.5)
  const wait = random.pick([500, 5000, 20_000])
  const jobs: ReadonlyArray<Operation["what"]> = [
    { _tag: "Redrive", queue: letters, limit: random.pick([undefined, 1, 5]), odd },
    { _tag: "Redrive", queue: letters, limit: undefined, odd },
    { _tag: "Purge", queue: letters, odd }
  ]
  const all: ReadonlyArray<Operation["what"]> = [
    ...jobs,
    { _tag: "List", queue: letters },
    { _tag: "Pause", for: wait },
    { _tag: "Restart", away: wait },
    { _tag: "Throttle", for: wait }
  ]
  return { at: random.whole(1000, calmAt), what: random.pick(isFirst ? jobs : all) }
}

/** Moments at which many messages are sent at once; none in most seeds. */
const bursts = (random: Random, calmAt: number): ReadonlyArray<number> =>
  random.chance(0.3) ? Array.from({ length: random.whole(1, 3) }, () => random.whole(0, calmAt)) : []

/** The traits that the sends of a seed have in common. */
interface Traffic {
  readonly calmAt: number
  readonly mood: Mood
  readonly handlerTimeout: number
  readonly bursts: ReadonlyArray<number>
}

const sending = (random: Random, key: number, { bursts, calmAt, handlerTimeout, mood }: Traffic): Sending => {
  const by = random.chance(0.2) ? "foreign" : "ours"
  const id = random.chance(0.15) ? "again" : `m${key}`
  const isOdd = random.chance(0.08)
  return {
    key,
    at: bursts.length > 0 ? random.pick(bursts) : random.whole(0, random.chance(0.7) ? 2000 : calmAt),
    by,
    id,
    delay: by === "ours" && random.chance(0.15) ? random.pick([300, 300, 10_000, 10_000, 1_200_000]) : 0,
    body: isOdd ? random.pick(["undecodable", "slowToDecode", "neverDecoded"]) : "good",
    ...(by === "foreign" && random.chance(0.3) ? { metadata: hostile(random, id) } : {}),
    runs: Array.from({ length: random.whole(0, 4) }, () => behaviour(random, mood, handlerTimeout))
  }
}

const refusal = (random: Random, key: number): Refusal => ({
  key,
  of: random.pick(["copy", "retry", "deadLetter", "deadLetter"]),
  until: random.pick([1, 2, 3, 4, 5, 5, 5]),
  ends: random.chance(0.6),
  reason: random.pick(["BodyTooLarge", "Unroutable", "AccessRefused"])
})

/** The scenario of a seed. `only` limits it to these kinds of brokers. */
export const scenario = (seed: number, only: ReadonlyArray<Kind> = kinds): Scenario => {
  const random = Draw.sequence(seed)
  const kind = random.pick(only)
  const calmAt = random.pick([5000, 30_000, 120_000])
  const lease = familyOf({ kind }) === "push" ? 0 : random.pick([5000, 30_000])
  const hasPeople = random.chance(0.3)
  const versions = Array.from({ length: random.pick([1, 1, 2]) }, () => version(random, lease, hasPeople))
  const isWild = random.chance(0.35)
  const clocks = random.chance(0.15)
  const names = ["a", "b", "c", "d"].slice(0, random.pick([1, 1, 1, 2, 2, 4]))
  const count = random.pick([1, 3, 8, 15])
  const traffic = {
    calmAt,
    mood: mood(random, hasPeople),
    handlerTimeout: versions[0]!.handlerTimeout,
    bursts: bursts(random, calmAt)
  }
  const focus = random.chance(0.3) ? random.pick(hasPeople ? ["operator", "operator", ...focuses] : focuses) : undefined
  const drawn: Scenario = {
    seed,
    kind,
    latency: random.pick([1, 5, 100]),
    lease,
    versions,
    processes: names.map((name) => process(random, name, versions.length, isWild, clocks)),
    sendings: Array.from({ length: count }, (_, index) => sending(random, index + 1, traffic)),
    refusals: random.chance(0.25)
      ? Array.from({ length: random.whole(1, 2) }, () => refusal(random, random.whole(1, count)))
      : [],
    operations: hasPeople
      ? Array.from({ length: random.whole(1, 3) }, (_, index) => operation(random, calmAt, index === 0))
      : [],
    rates: rates(random, focus !== undefined),
    ...(focus === undefined ? {} : { focus }),
    calmAt
  }
  const twisted = Twists.twisted(drawn)
  // A twist needs the program that it has.
  const programmed = twisted === drawn ? Programs.varied(drawn) : twisted
  if (kind === "sqlite") return Sqlite.of(programmed)
  return kind === "rabbitmq" ? RabbitMq.on(programmed) : programmed
}
