/**
 * Programs of other shapes than one handler: programs that pull, that limit their rate or their dead letters, or that take the
 * messages of a batch one by one. Few seeds have them, and they have their own random numbers, so all other seeds stay unchanged.
 */
import type { Behaviour, Process, Pull, Scenario, Version } from "../Scenario.ts"
import * as Draw from "../world/Draw.ts"

type Random = Draw.Sequence

/** Milliseconds of the longest delay, and of the worst clock, while a program pulls: each of its rounds takes steps of the world. */
const longest = 60_000

const pullOf = (random: Random, concurrency: number): Pull => {
  const loops = concurrency + random.whole(0, 1)
  // A broker needs time to deliver: a pull of a few milliseconds may never have a message.
  const wait = random.pick([2000, 5000, 60_000])
  const pause = random.pick([1, 500, 60_000, 300_000])
  return wait > 2000 && random.chance(0.4) ? { loops, wait, pause, timeout: 3000 } : { loops, wait, pause }
}

/** The program pulls. A lease is a handler's time, and nothing reruns its code. */
const pulling = (random: Random, version: Version): Version => {
  const concurrency = random.pick([1, 1, 2, 3])
  const pull = pullOf(random, concurrency)
  const batch = version.batch ?? { size: random.whole(1, 5), wait: random.pick([0, 100]) }
  return {
    ...version,
    pull,
    concurrency,
    prefetch: 0,
    immediate: 0,
    promise: true,
    backoff: version.backoff.map((delay) => Math.min(delay, longest)),
    // A program may lose its patience while a batch gathers.
    batch: pull.timeout === undefined ? batch : { size: 5, wait: 2000 }
  }
}

/** Some runs release their batch. */
const releasing = (random: Random, runs: ReadonlyArray<Behaviour>): ReadonlyArray<Behaviour> =>
  runs.map((run) => (random.chance(0.1) ? { ...run, releases: true } : run))

const nearly = (millis: number): number => Math.max(-longest, Math.min(millis, longest))

/** A clock that is off by little. A file's messages are due by the clocks of its processes. */
const near = ({ jumps, offset, speed }: Process["clock"]): Process["clock"] => ({
  offset: nearly(offset),
  speed,
  jumps: jumps.map(({ at, by }) => ({ at, by: nearly(by) }))
})

const pulled = (scenario: Scenario, random: Random): Scenario => ({
  ...scenario,
  processes: scenario.processes.map((process) => ({ ...process, clock: near(process.clock) })),
  versions: scenario.versions.map((version) => pulling(random, version)),
  sendings: scenario.sendings.map((sending) => ({
    ...sending,
    delay: Math.min(sending.delay, longest),
    runs: releasing(random, sending.runs)
  }))
})

const limited = (scenario: Scenario, random: Random): Scenario => ({
  ...scenario,
  versions: scenario.versions.map((version) => ({
    ...version,
    rateLimit: { max: random.pick([1, 2, 5]), per: random.pick([1000, 10_000, 60_000]) },
    ...(random.chance(0.4) ? { each: true } : {})
  }))
})

const budgeted = (scenario: Scenario, random: Random): Scenario => ({
  ...scenario,
  versions: scenario.versions.map((version) => ({
    ...version,
    budget: { max: random.pick([1, 2, 5]), perSuccess: random.pick([0.1, 0.5, 1]) }
  }))
})

const split = (scenario: Scenario): Scenario => ({
  ...scenario,
  versions: scenario.versions.map((version) => ({ ...version, each: true }))
})

/** Messages of a few groups in a FIFO queue, which drops ids that it knows and delays no single message. */
const grouped = (scenario: Scenario, random: Random): Scenario => {
  const groups = ["g", "h", "i"].slice(0, random.pick([1, 1, 2, 3]))
  return {
    ...scenario,
    fifo: random.pick(["block", "block", "resend"]),
    sendings: scenario.sendings.map((each) => {
      const { metadata: _, ...sending } = each
      return { ...sending, id: `m${each.key}`, delay: 0, group: random.pick(groups) }
    }),
    // A message that never ends holds up its group.
    refusals: scenario.refusals.map((refusal) => ({ ...refusal, ends: true }))
  }
}

/** The scenario, or one with programs of another shape. */
export const varied = (scenario: Scenario): Scenario => {
  const random = Draw.sequence(scenario.seed + 0x3c61_92af)
  if (scenario.kind === "sqs" && random.chance(0.12)) return grouped(scenario, random)
  const part = random.unit()
  if (part < 0.06) return pulled(scenario, random)
  if (part < 0.11) return limited(scenario, random)
  if (part < 0.14) return budgeted(scenario, random)
  return part < 0.15 ? split(scenario) : scenario
}
