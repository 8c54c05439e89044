/**
 * Trials: your handler and your policy, in many worlds whose brokers, connections and processes fail.
 *
 * Use them to learn what your program can lose, repeat or delay before production shows it, and to keep that in a test.
 */
import { OptionKind, OptionNames } from "@requeue/core/port"
import type { Kind } from "./Scenario.ts"
import * as Table from "./Table.ts"
import * as Fates from "./trial/Fates.ts"
import { type Options, rangeOf } from "./trial/Options.ts"
import * as Worlds from "./trial/Worlds.ts"

export type { Process } from "./program/Watched.ts"
export type { Options } from "./trial/Options.ts"

/** How many messages this happened to, and the first world in which it did. */
export interface Finding {
  readonly messages: number
  /** `undefined` if it happened to no message. */
  readonly seed: number | undefined
}

/**
 * The ends of all messages on one kind of broker. Each message that the broker had is one of `succeeded`, `deadLettered`,
 * `dropped`, `forgotten` and `unfinished`.
 */
export interface Report {
  readonly kind: Kind
  readonly worlds: number
  /** Messages whose send was confirmed. The broker may have others: a confirmation can be lost. */
  readonly sent: number
  /** Messages with a successful run: it called `ack`, or it returned and called nothing. */
  readonly succeeded: Finding
  /** Messages whose handler ran again after it had succeeded. */
  readonly repeated: Finding
  /** Messages that became a dead letter without a successful run. */
  readonly deadLettered: Finding
  /** Messages that became a dead letter despite a successful run. */
  readonly deadLetteredDone: Finding
  /** Messages that the policy or an error dropped. */
  readonly dropped: Finding
  /** Messages that the broker itself lost, as its kind may. */
  readonly forgotten: Finding
  /**
   * Messages without a successful run that were still queued when their world ended: its time or its steps were over, or the
   * broker received them after all processes had drained.
   */
  readonly unfinished: Finding
  /** The maximum number of handler runs of one message. */
  readonly mostRuns: number
  /** The longest time from the send to the handler's success, in milliseconds. */
  readonly longest: number
}

type Found = readonly [seed: number, fate: Fates.Fate]

const finding = (all: ReadonlyArray<Found>, is: (fate: Fates.Fate) => boolean): Finding => {
  const found = all.filter(([, fate]) => is(fate))
  return { messages: found.length, seed: found[0]?.[0] }
}

const most = (numbers: ReadonlyArray<number>): number => numbers.reduce((one, other) => Math.max(one, other), 0)

const reportOf = (kind: Kind, worlds: number, all: ReadonlyArray<Found>): Report => {
  const ended = (end: ReturnType<typeof Fates.endOf>): Finding => finding(all, (fate) => Fates.endOf(fate) === end)
  return {
    kind,
    worlds,
    sent: finding(all, ({ isSent }) => isSent).messages,
    succeeded: ended("succeeded"),
    repeated: finding(all, ({ isRepeated }) => isRepeated),
    deadLettered: ended("deadLettered"),
    deadLetteredDone: finding(all, ({ doneAt, isLetter }) => isLetter && doneAt !== undefined),
    dropped: ended("dropped"),
    forgotten: ended("forgotten"),
    unfinished: ended("unfinished"),
    mostRuns: most(all.map(([, { runs }]) => runs)),
    longest: Math.round(most(all.map(([, { doneAt, sentAt }]) => (doneAt ?? sentAt) - sentAt)))
  }
}

/**
 * Runs a program in many worlds, and reports what happened to its messages on each kind of broker. The same options give the same
 * reports if the handler reads no other clock and no random numbers.
 *
 * A world ends when all its messages have ended, 30 days after its last fault, or after 100,000 steps.
 *
 * @throws RangeError when an option is unknown, of another kind or out of its range, or a body is not JSON
 * @throws Error when the handler waits for something outside the world; any error of `handler` itself; ConfigurationError
 * when the consumer cannot start
 *
 * @example
 * ```ts
 * import { RetryPolicy } from "@requeue/core"
 * import { Trial } from "@requeue/simulation"
 *
 * const [rabbitmq] = await Trial.run({
 *   kinds: ["rabbitmq"],
 *   seeds: 50,
 *   bodies: [{ amount: 1 }, { amount: 2 }],
 *   consumer: { retry: RetryPolicy.make({ maxRetries: 5 }) },
 *   handler: ({ sleep }) => async () => {
 *     await sleep(200)
 *   }
 * })
 * rabbitmq!.deadLettered.messages // => 0
 * ```
 */
export const run = async (options: Options): Promise<ReadonlyArray<Report>> => {
  const { from, kinds, seeds } = rangeOf("Trial.run", options)
  const reports: Array<Report> = []
  for (const kind of kinds) {
    const all: Array<Found> = []
    for (let seed = from; seed < from + seeds; seed++) {
      const history = await Worlds.run(Worlds.scenarioOf(seed, kind, options), options)
      for (const fate of Fates.of(history)) all.push([seed, fate])
    }
    reports.push(reportOf(kind, seeds, all))
  }
  return reports
}

/**
 * Returns the events in the world of one seed, as a table for each kind of broker. Pass the `seed` of a {@link Finding} and the
 * same other options. It ignores `seeds` and `from`.
 *
 * @throws whatever {@link run} throws
 *
 * @example
 * ```ts
 * import { Trial } from "@requeue/simulation"
 *
 * const options: Trial.Options = { kinds: ["rabbitmq"], bodies: [{ amount: 1 }], handler: () => () => {} }
 * const text = await Trial.show({ ...options, seed: 7 })
 * text.includes("#1 is confirmed") // => true
 * ```
 */
export const show = async ({ seed, ...options }: Options & { readonly seed: number }): Promise<string> => {
  const { kinds } = rangeOf("Trial.show", options)
  OptionNames.orThrow(OptionNames.argument("Trial.show", "seed", seed, OptionKind.whole(0)))
  const tables: Array<string> = []
  for (const kind of kinds) {
    const scenario = Worlds.scenarioOf(seed, kind, options)
    tables.push(Table.print(await Worlds.run(scenario, options), [], scenario))
  }
  return tables.join("\n\n")
}
