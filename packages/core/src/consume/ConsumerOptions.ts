/** Options of a consumer, their defaults, and the checks that must pass before it starts. */
import * as Effect from "effect/Effect"
import type { BatchPolicy } from "../policy/BatchPolicy.ts"
import type { Capabilities, Lease } from "../port/Capabilities.ts"
import type { ConfigurationError } from "../options/ConfigurationError.ts"
import type { ConsumerBackoff } from "../policy/ConsumerBackoff.ts"
import * as DeadLetterBudget from "../policy/DeadLetterBudget.ts"
import * as Delay from "../message/Delay.ts"
import type { Hook } from "../observe/Event.ts"
import * as Feasibility from "../port/Feasibility.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as RateLimit from "../policy/RateLimit.ts"
import { inside } from "../policy/internal/retryNames.ts"
import * as RetryPolicy from "../policy/RetryPolicy.ts"

/** Options of whoever takes messages from a queue, but for its policies. */
export interface Intake {
  /**
   * Delay of retries for which neither the handler, nor its error, nor the policy has one, 0 to 24 hours; a number
   * counts milliseconds. Default 0.
   */
  readonly retryDelay?: Delay.DurationInput | undefined
  /** How many dead letters the consumer may make before it stops itself. Default: any number. */
  readonly deadLetterBudget?: DeadLetterBudget.Options | undefined
  /**
   * How long handlers may go on after a shutdown began, before they are interrupted, 0 to 24 hours; a number counts
   * milliseconds. Settlements then have as long once more, 1 second at least and 5 at most; what a broker has not answered
   * by then is left to it. Default 30 seconds.
   */
  readonly drainTimeout?: Delay.DurationInput | undefined
  /**
   * How to treat delays that the broker cannot honour: `"fail"` refuses to start, `"clamp"` shortens them to the
   * longest that it can. Default `"fail"`.
   */
  readonly onLimit?: "fail" | "clamp" | undefined
  /**
   * Whether failures keep their stack traces: in the log, in events, in spans and in dead letters, as far as the policy's `redact`
   * leaves them. Default true.
   */
  readonly stackTraces?: boolean | undefined
  /** Called with everything that happens to every message. Default: nothing is called. */
  readonly onEvent?: Hook | undefined
}

/** Options of whoever runs handlers, but for its policies. */
export interface Running extends Intake {
  /** Number of batches that may be in progress at a time, 1 to 1,000. Default 1. */
  readonly concurrency?: number | undefined
  /**
   * Number of messages that wait beside those in progress, so that the next batch is there when one ends, 0 to 10,000.
   * With 0, a consumer has no more messages than its handlers work on, so that none waits behind a slow one while
   * another consumer is idle; each then costs a way to the broker and back. Default: one batch.
   */
  readonly prefetch?: number | undefined
  /**
   * How many handler runs may begin in a time, such as `{ max: 10, per: "1 second" }`: in any window of `per`, `max` at most. A
   * batch is one run, and each immediate retry another one, which needs room at once. While the limit holds, the broker keeps the messages. Each consumer
   * counts its own runs, so divide the limit among processes. Default: no limit.
   */
  readonly rateLimit?: RateLimit.Options | undefined
  /**
   * Longest run of a handler, 1 ms to 12 hours, or `"unlimited"`; a number counts milliseconds. A run that takes longer
   * is interrupted and has failed. Default 10 minutes, or nine tenths of the broker's longest lease where that is less.
   */
  readonly handlerTimeout?: Delay.DurationInput | "unlimited" | undefined
}

/** Policies, built by their modules. */
export interface Policies {
  /**
   * When and how often a failed message is delivered again, and where it goes in the end. Default: 3 retries at once,
   * then the queue `<queue>.dlq`.
   */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /**
   * How messages are gathered into batches. Default: single messages for a message handler; 10 messages or 5 seconds
   * for a batch handler.
   */
  readonly batch?: BatchPolicy | undefined
  /** When the whole consumer pauses because its messages fail. Default: never. */
  readonly consumerBackoff?: ConsumerBackoff | undefined
}

/** Options of a consumer. All of them may be left out. */
export interface Options extends Policies, Running {}

/** Default of `handlerTimeout` in milliseconds, where the broker's longest lease allows it: 10 minutes. */
export const defaultHandlerTimeout = 10 * 60_000

const handlerTimeout = Delay.kind(1, 12 * 60 * 60_000)

/** All options and their kinds, by which wrong ones are found. */
export const kinds: OptionNames.Of<Options> = {
  retry: {
    ...OptionKind.object("a policy, made by RetryPolicy.make", "maxAttempts", "deadLetter"),
    inside: inside((retry) => `RetryPolicy.make(${retry})`)
  },
  retryDelay: Delay.kind(0, Delay.max),
  batch: OptionKind.object("a policy, made by BatchPolicy.make", "maxBatchSize", "maxBatchTimeout"),
  concurrency: OptionKind.whole(1, 1000),
  prefetch: OptionKind.whole(0, 10_000),
  rateLimit: true, // RateLimit.make names the wrong member.
  handlerTimeout: {
    ...handlerTimeout,
    expected: `${handlerTimeout.expected} or "unlimited"`,
    holds: (value) => value === "unlimited" || handlerTimeout.holds(value)
  },
  consumerBackoff: OptionKind.object("a consumer backoff, made by ConsumerBackoff.make", "form", "multiplier"),
  deadLetterBudget: OptionKind.object("a budget such as { max: 100 }", "max"),
  drainTimeout: Delay.kind(0, Delay.max),
  onLimit: OptionKind.oneOf(["fail", "clamp"]),
  stackTraces: OptionKind.flag,
  onEvent: OptionKind.callback
}

/**
 * Returns the options, and for those that it leaves out the options of the queue's definition, such as one of a config file.
 * `known` are the names that apply. `undefined` counts as left out.
 */
export const over = <O extends object>(queue: unknown, options: O, known: Readonly<Record<string, unknown>>): O => {
  const own: unknown = OptionKind.isObject(queue) ? Reflect.get(queue, "options") : undefined
  if (!OptionKind.isObject(own)) return options
  const defaults = Object.entries(own).filter(([name]) => Object.hasOwn(known, name))
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries([...defaults, ...given]) as O // Cast, because the options of a definition are those of a consumer.
}

/** Returns the queue without the options of its definition, for a caller that has applied them by {@link over}. */
export const bare = <Q>(queue: Q): Q => (OptionKind.isObject(queue) ? { ...queue, options: undefined } : queue)

/**
 * The error of a consumer without a handler: every message would fail, and would be a dead letter in the end.
 * `undefined` when there is one.
 */
export const handlerRefusal = (
  call: string,
  queue: OptionNames.Queue,
  options: unknown,
  handler: unknown
): RangeError | undefined => {
  if (typeof handler !== "function") {
    return OptionNames.error(
      call,
      queue,
      `handler must be a function, after the options, got ${OptionKind.show(handler)}`,
      typeof options === "function" ? `Write ${call}(queue, {}, handler)` : undefined
    )
  }
  if (!Object.prototype.toString.call(handler).endsWith("GeneratorFunction]")) return undefined
  return OptionNames.error(
    call,
    queue,
    "handler must be a function whose lines run, got a generator function",
    "Write async () => {}, or Effect.fn with Effect"
  )
}

/**
 * Checks the options and fills in their defaults; durations become milliseconds. `lease` is the broker's, if it has
 * one.
 *
 * @throws RangeError when an option is unknown, of another kind or out of its range
 */
export const resolve = (options: Options, lease?: Lease) => {
  OptionNames.check("Consumer.start", options, kinds)
  const {
    concurrency = 1,
    deadLetterBudget,
    drainTimeout = 30_000,
    onLimit = "fail",
    rateLimit,
    retry,
    retryDelay,
    stackTraces = true
  } = options
  const { handlerTimeout = Math.min(defaultHandlerTimeout, longestIn(lease)) } = options
  return {
    retry: retry === undefined ? RetryPolicy.make() : RetryPolicy.from(retry),
    deadLetterBudget: deadLetterBudget === undefined ? undefined : DeadLetterBudget.make(deadLetterBudget),
    retryDelay: retryDelay === undefined ? undefined : Delay.parse("retryDelay", retryDelay),
    handlerTimeout:
      handlerTimeout === "unlimited" ? Number.POSITIVE_INFINITY : Delay.parse("handlerTimeout", handlerTimeout),
    drainTimeout: Delay.parse("drainTimeout", drainTimeout),
    rateLimit: rateLimit === undefined ? undefined : RateLimit.make(rateLimit),
    concurrency,
    onLimit,
    stackTraces
  }
}

/** The longest run in milliseconds that leaves a tenth of the longest lease for settling. */
const longestIn = (lease: Lease | undefined): number =>
  lease === undefined ? Number.POSITIVE_INFINITY : lease.max * 0.9

/**
 * Fails when the broker cannot do what the options ask, or when dead letters would come back to their own queue.
 * Consumers call it before they subscribe.
 */
export const verify = (
  resolved: ReturnType<typeof resolve>,
  capabilities: Capabilities,
  queue: string
): Effect.Effect<void, ConfigurationError> => {
  const refusal = Feasibility.refusal(Feasibility.check(resolved, capabilities, queue), capabilities, queue)
  return refusal === undefined ? Effect.void : Effect.fail(refusal)
}
