/**
 * Trials: a handler and a policy of your own, in many worlds whose brokers, connections and processes fail.
 *
 * When to use: to learn what your program can lose, repeat or delay before production shows it, and to keep that in a
 * test.
 */
import { type BatchPolicy, Consumer, type ConsumerOptions, type Handler, RetryPolicy } from "@requeue/core"
import * as Generate from "./Generate.ts"
import type { History } from "./History.ts"
import { queue, type Kind, type Scenario, type Version } from "./Scenario.ts"
import * as Simulation from "./Simulation.ts"
import * as Watched from "./program/Watched.ts"

/** The things that a process gives to its handler. Time in a world is virtual: timers of Node do not count in it. */
export interface Process {
  /** Lets so many milliseconds of the world pass. */
  readonly sleep: (millis: number) => Promise<void>
  /** Milliseconds since the epoch, by the process's own clock. */
  readonly now: () => number
}

/** Options of {@link run}. */
export interface Options {
  /**
   * Makes the handler of one process; each process has its own. It may wait for promises and for `sleep`, not for timers
   * or sockets.
   */
  readonly handler: (process: Process) => (message: Handler.Received<any>, context: Handler.Context) => unknown // The type of a body is what the handler says it is.
  /** The bodies that are sent in each world, as JSON, 1 to 100 of them. */
  readonly bodies: ReadonlyArray<unknown>
  /** Options of the consumer. Default: those of `consume`. */
  readonly consumer?: Pick<
    ConsumerOptions.Options,
    "retry" | "retryDelay" | "concurrency" | "prefetch" | "handlerTimeout" | "consumerBackoff" | "drainTimeout"
  >
  /** How messages are gathered. Default: not at all. */
  readonly batch?: BatchPolicy.BatchPolicy
  /** How many worlds. Default: 300. */
  readonly seeds?: number
  /** The first seed. Default: 1. */
  readonly from?: number
  /** The kinds of brokers. Default: all. */
  readonly kinds?: ReadonlyArray<Kind>
}

/** How many messages had this, and the first world in which one did. */
export interface Finding {
  readonly messages: number
  /** `undefined` when no message did. */
  readonly seed: number | undefined
}

/** The ends of all messages on one kind of broker. */
export interface Report {
  readonly kind: Kind
  readonly worlds: number
  /** Messages whose send was confirmed. */
  readonly sent: number
  /** Messages whose handler succeeded. */
  readonly succeeded: Finding
  /** Messages whose handler ran again after it had succeeded. */
  readonly repeated: Finding
  /** Messages that became a dead letter and whose handler had not succeeded. */
  readonly deadLettered: Finding
  /** Messages that became a dead letter though their handler had succeeded. */
  readonly deadLetteredDone: Finding
  /** Messages that were dropped, as the policy or an error asked. */
  readonly dropped: Finding
  /** Messages that the broker itself lost, as its kind may. */
  readonly forgotten: Finding
  /** The most handler runs of one message. */
  readonly mostRuns: number
  /** The longest time from the send to the handler's success, in milliseconds. */
  readonly longest: number
}

/** The end of one message, and the way to it. */
interface Fate {
  isSent: boolean
  sentAt: number
  runs: number
  doneAt: number | undefined
  isRepeated: boolean
  isLetter: boolean
  isForgotten: boolean
}

const fatesOf = (history: History): ReadonlyArray<Fate> => {
  const fates = new Map<number, Fate>()
  const open = new Map<number, ReadonlyArray<number>>()
  for (const entry of history) {
    if (entry._tag === "Sending") {
      fates.set(entry.key, {
        isSent: false,
        sentAt: entry.at,
        runs: 0,
        doneAt: undefined,
        isRepeated: false,
        isLetter: false,
        isForgotten: false
      })
    } else if (entry._tag === "Sent") fates.get(entry.key)!.isSent = true
    else if (entry._tag === "Stored" && entry.queue !== queue) fates.get(entry.key)!.isLetter = true
    else if (entry._tag === "Gone" && entry.why === "forgotten") fates.get(entry.key)!.isForgotten = true
    else if (entry._tag === "Began") {
      const keys = entry.given.map(({ key }) => key)
      open.set(entry.run, keys)
      for (const fate of keys.map((key) => fates.get(key)!)) {
        fate.runs++
        if (fate.doneAt !== undefined) fate.isRepeated = true
      }
    } else if (entry._tag === "Ended" && entry.how === "returned") {
      for (const key of open.get(entry.run) ?? []) fates.get(key)!.doneAt ??= entry.at
    }
  }
  return [...fates.values()]
}

const scenarioOf = (seed: number, kinds: ReadonlyArray<Kind>, options: Options): Scenario => {
  const drawn = Generate.scenario(seed, kinds)
  const policy = RetryPolicy.from(options.consumer?.retry ?? RetryPolicy.make())
  const [first] = drawn.versions
  const version: Version = {
    ...first!,
    maxAttempts: policy.maxAttempts,
    maxDeliveries: policy.maxDeliveries,
    deadLetter: RetryPolicy.deadLetterQueue(policy, queue, "retries-exhausted")
  }
  const { sendings } = drawn
  return {
    ...drawn,
    versions: [version],
    processes: drawn.processes.map((each) => ({ ...each, versions: [0] })),
    // People who redrive or purge would change what is counted.
    operations: drawn.operations.filter(({ what: { _tag } }) => _tag === "Restart" || _tag === "Throttle"),
    refusals: [],
    sendings: options.bodies.map((_, index) => ({
      key: index + 1,
      at: sendings[index % sendings.length]!.at,
      by: "ours",
      id: `m${index + 1}`,
      delay: 0,
      body: "good",
      runs: []
    }))
  }
}

const subjectOf = ({ batch, bodies, consumer, handler }: Options): Simulation.Subject => ({
  bodyOf: ({ key }) => Buffer.from(JSON.stringify(bodies[key - 1])),
  start: (world, machine) => {
    const sleep = (millis: number) => new Promise<void>((resolve) => void machine.after(millis, resolve))
    const own = handler({ sleep, now: machine.wallClock })
    return Consumer.start(
      queue,
      { ...consumer, ...(batch === undefined ? {} : { batch }) },
      Watched.watched(world, machine, own)
    )
  }
})

const finding = (all: ReadonlyArray<readonly [number, Fate]>, is: (fate: Fate) => boolean): Finding => {
  const found = all.filter(([, fate]) => is(fate))
  return { messages: found.length, seed: found[0]?.[0] }
}

const reportOf = (kind: Kind, worlds: number, all: ReadonlyArray<readonly [number, Fate]>): Report => {
  const isDone = ({ doneAt }: Fate): boolean => doneAt !== undefined
  const durations = all.map(([, { doneAt, sentAt }]) => (doneAt ?? sentAt) - sentAt)
  return {
    kind,
    worlds,
    sent: all.filter(([, { isSent }]) => isSent).length,
    succeeded: finding(all, isDone),
    repeated: finding(all, ({ isRepeated }) => isRepeated),
    deadLettered: finding(all, (fate) => fate.isLetter && !isDone(fate)),
    deadLetteredDone: finding(all, (fate) => fate.isLetter && isDone(fate)),
    dropped: finding(
      all,
      (fate) => fate.isSent && fate.runs > 0 && !isDone(fate) && !fate.isLetter && !fate.isForgotten
    ),
    forgotten: finding(all, (fate) => fate.isForgotten && !isDone(fate) && !fate.isLetter),
    mostRuns: Math.max(0, ...all.map(([, { runs }]) => runs)),
    longest: Math.round(Math.max(0, ...durations))
  }
}

/**
 * Runs a program in many worlds, and tells what happened to its messages on each kind of broker. The same options have the
 * same reports, as long as the handler itself reads no clock and no random number of its own.
 *
 * @throws RangeError when there are no bodies, or more than 100, or an option of the consumer is wrong
 *
 * @example
 * ```ts
 * import { RetryPolicy } from "@requeue/core"
 * import { Trial } from "@requeue/simulation"
 *
 * const [push] = await Trial.run({
 *   kinds: ["push"],
 *   seeds: 50,
 *   bodies: [{ amount: 1 }, { amount: 2 }],
 *   consumer: { retry: RetryPolicy.make({ maxRetries: 5 }) },
 *   handler: ({ sleep }) => async () => {
 *     await sleep(200)
 *   }
 * })
 * push!.deadLettered.messages // => 0
 * ```
 */
export const run = async (options: Options): Promise<ReadonlyArray<Report>> => {
  const { bodies, from = 1, kinds = ["push", "lease", "lossy"], seeds = 300 } = options
  if (bodies.length < 1 || bodies.length > 100) {
    throw new RangeError(`Trial.run: bodies must be 1 to 100, got ${bodies.length}`)
  }
  const subject = subjectOf(options)
  const reports: Array<Report> = []
  for (const kind of kinds) {
    const all: Array<readonly [number, Fate]> = []
    for (let seed = from; seed < from + seeds; seed++) {
      const history = await Simulation.run(scenarioOf(seed, [kind], options), subject)
      for (const fate of fatesOf(history)) all.push([seed, fate])
    }
    reports.push(reportOf(kind, seeds, all))
  }
  return reports
}
