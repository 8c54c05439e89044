/**
 * Shrinking: from a scenario that breaks a law to a small one that breaks the same law. Scenarios that break another law are
 * rejected, because they show another defect.
 */
import type { History } from "./History.ts"
import type { Behaviour, Process, Scenario, Sending, Version } from "./Scenario.ts"

/** Runs a scenario, and returns the law that it breaks, if any. */
export type Check = (scenario: Scenario) => Promise<{ readonly law: string | undefined; readonly history: History }>

/** The number of events of a scenario: sends, handler runs that are not plain, faults, operators, ends. */
export const size = ({ only = [], operations, processes, refusals, sendings }: Scenario): number =>
  sendings.length +
  sendings.reduce((sum, { runs }) => sum + runs.length, 0) +
  only.length +
  operations.length +
  refusals.length +
  processes.reduce((sum, { freezes, lives }) => sum + lives.length + freezes.length, processes.length)

/** A list in a scenario whose parts can be left out. */
interface Part {
  readonly get: (scenario: Scenario) => ReadonlyArray<unknown>
  readonly set: (scenario: Scenario, list: ReadonlyArray<any>) => Scenario // the list is a part of what `get` returned
  readonly least: number
}

const part = (name: keyof Scenario, least = 0): Part => ({
  get: (scenario) => scenario[name] as ReadonlyArray<unknown>, // called for lists only
  set: (scenario, list) => ({ ...scenario, [name]: list }),
  least
})

/** A list in each process, or in each message. */
const within = <K extends "processes" | "sendings">(
  outer: K,
  index: number,
  inner: K extends "processes" ? keyof Process : keyof Sending
): Part => ({
  get: (scenario) => scenario[outer][index]?.[inner as never] ?? [], // one of its lists
  set: (scenario, list) => ({
    ...scenario,
    [outer]: scenario[outer].map((each, at) => (at === index ? { ...each, [inner]: list } : each))
  }),
  least: 0
})

const partsOf = (scenario: Scenario): ReadonlyArray<Part> => [
  part("sendings"),
  part("only"),
  part("operations"),
  part("refusals"),
  part("processes", 1),
  ...scenario.processes.flatMap((_, index) => [
    within("processes", index, "lives"),
    within("processes", index, "freezes")
  ]),
  ...scenario.sendings.map((_, index) => within("sendings", index, "runs"))
]

const plain: Partial<Version> = {
  immediate: 0,
  prefetch: 0,
  concurrency: 1,
  batch: undefined,
  rateLimit: undefined,
  shareLimits: undefined,
  consumerBackoff: undefined,
  maxAge: undefined,
  backoff: [],
  hook: "none",
  redact: "none"
}

const atOnce: Behaviour = { takes: 0 }

/** Scenarios that are a little simpler, outside lists. */
function* simpler(scenario: Scenario): Generator<Scenario> {
  const { processes, sendings, versions } = scenario
  if (versions.length > 1) {
    const alone = processes.map((each) => ({ ...each, versions: [0] }))
    for (const version of versions) yield { ...scenario, versions: [version], processes: alone }
  }
  if (scenario.latency > 1) yield { ...scenario, latency: 1 }
  for (const [index, version] of versions.entries()) {
    for (const [name, value] of Object.entries(plain)) {
      const known = version[name as keyof Version] // as the names of `plain` are
      if (JSON.stringify(known) === JSON.stringify(value)) continue
      yield { ...scenario, versions: versions.with(index, { ...version, [name]: value }) }
    }
  }
  for (const [index, process] of processes.entries()) {
    const { jumps, offset, speed } = process.clock
    const clock = { offset: 0, speed: 1, jumps: [] }
    const isPlain = offset === 0 && speed === 1 && jumps.length === 0 && process.startsAt === 0
    if (!isPlain) yield { ...scenario, processes: processes.with(index, { ...process, clock, startsAt: 0 }) }
  }
  for (const [index, each] of sendings.entries()) {
    const { metadata: _, ...sending } = each
    if (each.metadata !== undefined) yield { ...scenario, sendings: sendings.with(index, sending) }
    if (each.delay > 0) yield { ...scenario, sendings: sendings.with(index, { ...each, delay: 0 }) }
    if (each.body !== "good") yield { ...scenario, sendings: sendings.with(index, { ...each, body: "good" }) }
    if (each.by !== "ours") yield { ...scenario, sendings: sendings.with(index, { ...each, by: "ours" }) }
    for (const [nth, run] of each.runs.entries()) {
      const names = Object.keys(run) as Array<keyof Behaviour> // scenarios have no others
      for (const name of names) {
        if (name === "takes" && run.takes === 0) continue
        const { [name]: _, ...rest } = run
        yield {
          ...scenario,
          sendings: sendings.with(index, { ...each, runs: each.runs.with(nth, { ...atOnce, ...rest }) })
        }
      }
    }
  }
}

/** Scenarios with one part less. */
function* less(scenario: Scenario): Generator<Scenario> {
  for (const { get, least, set } of partsOf(scenario)) {
    const list = get(scenario)
    if (list.length > least) for (const index of list.keys()) yield set(scenario, list.toSpliced(index, 1))
  }
}

/** Scenarios in which a fault happens at its place after fewer events, as when an earlier part is left out. */
function* earlier(scenario: Scenario): Generator<Scenario> {
  const { only = [] } = scenario
  for (const [index, site] of only.entries()) {
    const [, place, nth = 1] = /^(.*) (\d+)$/.exec(site) ?? []
    const last = Number(nth) - 1
    for (const count of new Set([last, last - 1, last - 2, ...[2, 4, 8].map((part) => Math.floor(last / part))])) {
      if (count >= 1) yield { ...scenario, only: only.with(index, `${place} ${count}`) }
    }
  }
}

/** Scenarios in which a message is sent earlier, or a process lives for half the time. */
function* sooner(scenario: Scenario): Generator<Scenario> {
  const { processes, sendings } = scenario
  for (const [index, sending] of sendings.entries()) {
    if (sending.at > 0) yield { ...scenario, sendings: sendings.with(index, { ...sending, at: 0 }) }
  }
  for (const [index, process] of processes.entries()) {
    for (const [nth, life] of process.lives.entries()) {
      const lives = process.lives.with(nth, { ...life, lasts: Math.floor(life.lasts / 2) })
      if (life.lasts > 1) yield { ...scenario, processes: processes.with(index, { ...process, lives }) }
    }
  }
}

/** Scenarios with one part less, and another change that may have made that part necessary. */
function* pairs(scenario: Scenario): Generator<Scenario> {
  for (const change of [earlier, less, sooner, simpler]) for (const one of less(scenario)) yield* change(one)
}

/** The number of events that a person can read. A larger scenario is worth more runs. */
const readable = 20

/**
 * Shrinks a scenario that breaks `law`, with at most `runs` runs.
 *
 * @throws RangeError if the scenario does not break that law
 */
export const shrink = async (scenario: Scenario, law: string, check: Check, tries = 20_000): Promise<Scenario> => {
  let left = tries
  let best = scenario

  const take = async (candidate: Scenario): Promise<boolean> => {
    if (left-- <= 0) return false
    const isSame = (await check(candidate)).law === law
    if (isSame) best = candidate
    return isSame
  }

  /** Repeats all changes until none is accepted. After an accepted change it tries the others first. */
  const sweep = async (
    changes: (scenario: Scenario) => Iterable<Scenario>,
    isEnough = (): boolean => false
  ): Promise<void> => {
    let all = [...changes(best)]
    for (let nth = 0, refused = 0; refused < all.length && left > 0 && !isEnough(); ) {
      if (await take(all[nth % all.length]!)) {
        all = [...changes(best)]
        refused = 0
      } else {
        nth++
        refused++
      }
    }
  }

  const reduce = async ({ get, least, set }: Part): Promise<void> => {
    for (let length = get(best).length; length >= 1; length = Math.floor(length / 2)) {
      for (let from = 0; from < get(best).length; ) {
        const list = get(best)
        const rest = [...list.slice(0, from), ...list.slice(from + length)]
        if (rest.length < least || !(await take(set(best, rest)))) from += length
      }
    }
  }

  const reduceAll = async (): Promise<void> => {
    for (let before: Scenario | undefined; best !== before && left > 0; ) {
      before = best
      for (const each of partsOf(best)) await reduce(each)
      await sweep(simpler)
    }
  }

  const { history, law: broken } = await check(scenario)
  if (broken !== law) {
    throw new RangeError(
      `Shrink.shrink: law must be the first that the scenario breaks, ${broken ?? "none"}, got ${law}`
    )
  }
  const only = history.flatMap((entry) => (entry._tag === "Fault" ? [entry.site] : []))
  await take({ ...scenario, only })
  await reduceAll()
  await sweep(pairs, () => size(best) <= readable)
  await reduceAll()
  return best
}
