/** Things that scenarios of a file have besides those of a broker: transactions, power cuts, and processes of one machine. */
import type { Operation, Process, Scenario, Sending, Version, Within } from "../Scenario.ts"
import * as Draw from "../world/Draw.ts"
import { alone, burst, each } from "./Shapes.ts"

type Random = Draw.Sequence

const within = ({ pick }: Random): Within => ({
  takes: pick([0, 0, 0, 10, 500, 3000]),
  ends: pick(["commit", "commit", "commit", "commit", "rollback", "kill"] as const)
})

/** Some handlers have transactions, more often in their first run. */
const transacting = (random: Random, sending: Sending, part: number): Sending => {
  const runs = sending.runs.length === 0 ? [{ takes: 0 }] : sending.runs
  return { ...sending, runs: runs.map((run) => (random.chance(part) ? { ...run, within: within(random) } : run)) }
}

/** Processes of one machine have one clock. In a few scenarios they differ. */
const sharing = (processes: ReadonlyArray<Process>, clock = processes[0]!.clock): ReadonlyArray<Process> =>
  processes.map((process) => ({ ...process, clock }))

/**
 * Whether operators take letters. They have true clocks: a process whose clock is ahead would end each of their leases immediately,
 * and they would take the same letters repeatedly.
 */
const hasJobs = ({ operations }: Scenario): boolean =>
  operations.some(({ what: { _tag } }) => _tag === "Redrive" || _tag === "Purge" || _tag === "List")

const clocksOf = (scenario: Scenario, isShared: boolean): ReadonlyArray<Process> => {
  const { processes } = scenario
  if (hasJobs(scenario)) return sharing(processes, trueClock)
  return isShared ? sharing(processes) : processes
}

const restart = ({ pick, whole }: Random, calmAt: number): Operation => ({
  at: whole(100, calmAt),
  what: { _tag: "Restart", away: pick([0, 500, 5000]) }
})

/** Clocks differ by more than a lease: a process takes messages that another one has, and may settle. */
const skewed = (scenario: Scenario, { chance, pick, whole }: Random): Scenario => {
  const [process] = alone(scenario)
  const { clock } = process!
  const ahead = { ...clock, offset: clock.offset + pick([20_000, 600_000]) }
  return {
    ...scenario,
    versions: each(scenario, { concurrency: 5, prefetch: pick([0, 5]), consumerBackoff: undefined }),
    processes: [process!, { ...process!, name: "z", startsAt: whole(0, 2000), clock: ahead }],
    sendings: burst(whole(3, 9), 500, { takes: pick([300, 900, 3000]), ...(chance(0.5) ? { throws: "error" } : {}) }, 2)
  }
}

/** The part of all scenarios with such clocks. */
const part = 0.08

/** The part of all scenarios whose programs send with keys. */
const keyedPart = 0.3

const keyed = (random: Random, sendings: ReadonlyArray<Sending>): ReadonlyArray<Sending> => {
  const keys = ["k", "l", "m"].slice(0, random.pick([1, 1, 2, 3]))
  return sendings.map((sending) =>
    sending.by === "ours" && random.chance(0.8) ? { ...sending, group: random.pick(keys) } : sending
  )
}

/** The part of all scenarios whose programs send with `fairBy`. */
const sharedPart = 0.3

const trueClock: Process["clock"] = { offset: 0, speed: 1, jumps: [] }

/** Messages of a few shares, perhaps with limits. A rate counts deliveries by the clocks of the processes. */
const shared = (scenario: Scenario, random: Random): Scenario => {
  const shares = ["s", "t", "u"].slice(0, random.pick([1, 2, 2, 3]))
  const [concurrency, max, per] = [random.pick([1, 1, 2]), random.pick([1, 2]), random.pick([1000, 10_000])]
  const limits = random.pick([undefined, { concurrency }, { concurrency }, { rateLimit: { max, per } }])
  const isPulled = scenario.versions.some(({ pull }) => pull !== undefined)
  const isNarrow = random.chance(0.5) && !isPulled
  // Without limits, only a backlog shows whether shares take turns.
  const isCrowded = isNarrow && limits === undefined
  const program: Partial<Version> = {
    ...(isNarrow ? { prefetch: 0, concurrency: isCrowded ? 1 : random.whole(1, 4), batch: undefined } : {}),
    ...(limits === undefined || isPulled ? {} : { shareLimits: limits }),
    ...(limits?.rateLimit === undefined ? {} : { immediate: 0 })
  }
  return {
    ...scenario,
    versions: each(scenario, program),
    processes: limits?.rateLimit === undefined ? scenario.processes : sharing(scenario.processes, trueClock),
    sendings: scenario.sendings.map((sending) => ({
      ...sending,
      ...(sending.by === "ours" && random.chance(0.8) ? { share: random.pick(shares) } : {}),
      ...(isCrowded ? { at: 500 } : {})
    }))
  }
}

/** A row is never too large for a file, and nothing else refuses one message alone. */
export const of = (drawn: Scenario): Scenario => {
  const random = Draw.sequence(drawn.seed + 0x7d1f_40b9)
  const isSkewed = random.chance(part)
  const scenario = isSkewed ? skewed(drawn, random) : drawn
  const { calmAt, operations, sendings } = scenario
  const transactions = random.pick([0, 0.3, 0.8])
  const keys = Draw.sequence(drawn.seed + 0x1b56_c4e9)
  const sent = keys.chance(keyedPart) ? keyed(keys, sendings) : sendings
  const cuts = random.chance(0.25) ? Array.from({ length: random.whole(1, 3) }, () => restart(random, calmAt)) : []
  const made: Scenario = {
    ...scenario,
    processes: clocksOf(scenario, random.chance(0.8) && !isSkewed),
    sendings: transactions === 0 ? sent : sent.map((sending) => transacting(random, sending, transactions)),
    operations: [...operations, ...cuts],
    refusals: []
  }
  const shares = Draw.sequence(drawn.seed + 0x5e2c_81a3)
  return shares.chance(sharedPart) && !isSkewed ? shared(made, shares) : made
}
