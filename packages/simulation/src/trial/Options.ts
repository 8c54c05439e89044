/** The options of a trial, and their checks before the first world is made. */
import { type BatchPolicy } from "@requeue/core"
import { ConsumerOptions, OptionKind, OptionNames } from "@requeue/core/port"
import { isDeepStrictEqual } from "node:util"
import type * as Watched from "../program/Watched.ts"
import * as Range from "../Range.ts"
import * as Scenario from "../Scenario.ts"

/** Options of `Trial.run`. */
export interface Options {
  /**
   * Makes the handler of one process; each process has its own. It may wait for `sleep`, and for promises that need nothing
   * outside the world. A handler that waits for a timer or a socket of Node ends the trial with an error.
   */
  readonly handler: (process: Watched.Process) => Watched.Own
  /** The bodies of the messages in each world, as JSON, 1 to 100 of them. */
  readonly bodies: ReadonlyArray<unknown>
  /** Options of the consumer. Default: those of `consume`. */
  readonly consumer?: Pick<
    ConsumerOptions.Options,
    "retry" | "retryDelay" | "concurrency" | "prefetch" | "handlerTimeout" | "consumerBackoff" | "drainTimeout"
  >
  /** How messages are batched. Default: not at all. */
  readonly batch?: BatchPolicy.BatchPolicy
  /** The number of worlds. Default: 300. */
  readonly seeds?: number
  /** The first seed. Default: 1. */
  readonly from?: number
  /**
   * The kinds of brokers, each once. Each needs its adapter: `rabbitmq` needs `@requeue/adapter-rabbitmq`, for example.
   * Default: `rabbitmq`, `sqs` and `nsq`.
   */
  readonly kinds?: ReadonlyArray<Scenario.Kind>
}

const { batch, concurrency, consumerBackoff, drainTimeout, handlerTimeout, prefetch, retry, retryDelay } =
  ConsumerOptions.kinds

const ofConsumer: OptionNames.Of<NonNullable<Options["consumer"]>> = {
  retry,
  retryDelay,
  concurrency,
  prefetch,
  handlerTimeout,
  consumerBackoff,
  drainTimeout
}

const known: OptionNames.Of<Options> = {
  handler: OptionKind.callback,
  bodies: OptionKind.list,
  consumer: OptionKind.object("an object with options of the consumer, such as { concurrency: 5 }"),
  batch,
  seeds: true,
  from: true,
  kinds: true
}

const isJson = (body: unknown): boolean => {
  try {
    return isDeepStrictEqual(JSON.parse(JSON.stringify(body)), body)
  } catch {
    return false
  }
}

const bodies = (call: string, all: ReadonlyArray<unknown>): RangeError | undefined => {
  if (all.length < 1 || all.length > 100)
    return OptionNames.error(call, undefined, `bodies must be 1 to 100, got ${all.length}`)
  const wrong = all.findIndex((body) => !isJson(body))
  if (wrong < 0) return undefined
  const problem = `bodies[${wrong}] must be the same after JSON.stringify and JSON.parse, got ${OptionKind.show(all[wrong])}`
  return OptionNames.error(
    call,
    undefined,
    problem,
    "Replace dates, undefined and other values that JSON cannot contain"
  )
}

/**
 * Returns the seeds and kinds of the options.
 *
 * @throws RangeError when an option is unknown, of another kind or out of its range
 */
export const rangeOf = (call: string, options: Options): Range.Range => {
  OptionNames.check(call, options, known)
  const { consumer = {}, from = 1, kinds = Scenario.kinds, seeds = 300 } = options
  const range = { from, seeds, kinds }
  OptionNames.orThrow(
    OptionNames.argument(call, "handler", options.handler, OptionKind.callback) ??
      OptionNames.argument(call, "bodies", options.bodies, OptionKind.list) ??
      bodies(call, options.bodies) ??
      OptionNames.refusal(`${call}: consumer`, consumer, ofConsumer) ??
      Range.refusal(call, range)
  )
  return range
}
