/** The options of a consumer, their defaults, and the checks that must pass before the consumer starts. */
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
import * as ShareLimits from "../policy/ShareLimits.ts"
import { inside } from "../policy/internal/retryNames.ts"
import * as RetryPolicy from "../policy/RetryPolicy.ts"

/** The options that consumers and pullers share, except policies. */
export interface Intake {
  /**
   * Delay of a retry if neither handler, error nor policy sets one. Range: 0 to 24 hours; a number means milliseconds.
   * Default: 0.
   */
  readonly retryDelay?: Delay.DurationInput | undefined
  /** Stops the consumer when it dead-letters too many messages. Default: none. */
  readonly deadLetterBudget?: DeadLetterBudget.Options | undefined
  /**
   * How long handlers may run after a shutdown begins. Their acks and retries then get the same time, but 1 to 5
   * seconds, to reach the broker. Range: 0 to 24 hours; a number means milliseconds. Default: 30 seconds.
   */
  readonly drainTimeout?: Delay.DurationInput | undefined
  /**
   * Handling of delays that exceed the broker's limit. `"fail"`: the consumer does not start. `"clamp"`: Requeue
   * shortens the delays. Default: `"fail"`.
   */
  readonly onLimit?: "fail" | "clamp" | undefined
  /** Whether the log, events, spans and dead letters have stack traces. Default: `true`. */
  readonly stackTraces?: boolean | undefined
  /** Function that receives every event of every message. Default: none. */
  readonly onEvent?: Hook | undefined
}

/** The options of a consumer, except its policies. */
export interface Running extends Intake {
  /** How many batches or single messages are in progress at the same time. Range: 1 to 1,000. Default: 1. */
  readonly concurrency?: number | undefined
  /**
   * How many messages wait in the process besides those in progress. 0 shares messages best between consumers, but
   * costs a round trip per message. Range: 0 to 10,000. Default: one batch; 0 with `shareLimits`.
   */
  readonly prefetch?: number | undefined
  /**
   * Limits how many handler runs of this consumer begin in a window, such as `{ max: 10, per: "1 second" }`. Default: none.
   */
  readonly rateLimit?: RateLimit.Options | undefined
  /**
   * Limits of the messages with the same `fairBy`, such as `{ concurrency: 2 }`, over all consumers of the queue. `prefetch` is then 0 by
   * default. Default: none.
   */
  readonly shareLimits?: ShareLimits.Options | undefined
  /**
   * Longest handler run. After that, the attempt fails and the handler's `signal` is aborted. Range: 1 ms to 12 hours,
   * or `"unlimited"`; a number means milliseconds. Default: 10 minutes, or nine tenths of the broker's longest lease of
   * a message if that is less.
   */
  readonly handlerTimeout?: Delay.DurationInput | "unlimited" | undefined
}

/** The policies of a consumer, made by `RetryPolicy.make`, `BatchPolicy.make` and `ConsumerBackoff.make`. */
export interface Policies {
  /**
   * When a failed message is retried and where it is dead-lettered. Default: 3 retries without delay, then the queue
   * `<queue>.dlq`.
   */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /**
   * How many messages a batch has. Default: single messages for a message handler; 10 messages or 5 seconds for a batch
   * handler.
   */
  readonly batch?: BatchPolicy | undefined
  /** Pauses the consumer while its handlers fail. Default: none. */
  readonly consumerBackoff?: ConsumerBackoff | undefined
}

/** The options of a consumer. All are optional. */
export interface Options extends Policies, Running {}

/** The default of `handlerTimeout`: 10 minutes, in milliseconds. It is lower if the broker's leases are shorter. */
export const defaultHandlerTimeout = 10 * 60_000

const handlerTimeout = Delay.kind(1, 12 * 60 * 60_000)

/** Returns the kind of what a constructor makes. */
const made = (what: string, call: string, ...members: ReadonlyArray<string>): OptionKind.OptionKind => ({
  ...OptionKind.object(`${what}, made by ${call}`, ...members),
  remedy: (value) => (OptionKind.isObject(value) ? `Write ${call}({ … })` : undefined)
})

/** The kind of each option of a consumer, by name. */
export const kinds: OptionNames.Of<Options> = {
  retry: {
    ...made("a policy", "RetryPolicy.make", "maxAttempts", "deadLetter"),
    inside: inside((retry) => `RetryPolicy.make(${retry})`)
  },
  retryDelay: Delay.kind(0, Delay.max),
  batch: made("a policy", "BatchPolicy.make", "maxBatchSize", "maxBatchTimeout"),
  concurrency: OptionKind.whole(1, 1000),
  prefetch: OptionKind.whole(0, 10_000),
  rateLimit: true, // RateLimit.make names the wrong member.
  shareLimits: true, // ShareLimits.make does.
  handlerTimeout: {
    ...handlerTimeout,
    expected: `${handlerTimeout.expected} or "unlimited"`,
    holds: (value) => value === "unlimited" || handlerTimeout.holds(value)
  },
  consumerBackoff: made("a consumer backoff", "ConsumerBackoff.make", "form", "multiplier"),
  deadLetterBudget: OptionKind.object("a budget such as { max: 100 }", "max"),
  drainTimeout: Delay.kind(0, Delay.max),
  onLimit: OptionKind.oneOf(["fail", "clamp"]),
  stackTraces: OptionKind.flag,
  onEvent: OptionKind.callback
}

/**
 * Adds the options of a queue's definition, which a config file may set, to the options of a call. An option of the
 * call wins, unless it is `undefined`. `known` has the names of the options that may be added.
 */
export const over = <O extends object>(queue: unknown, options: O, known: Readonly<Record<string, unknown>>): O => {
  const own: unknown = OptionKind.isObject(queue) ? Reflect.get(queue, "options") : undefined
  if (!OptionKind.isObject(own)) return options
  const defaults = Object.entries(own).filter(([name]) => Object.hasOwn(known, name))
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries([...defaults, ...given]) as O // Cast, because the options of a definition are those of a consumer.
}

/** Returns the queue without the options of its definition. Call it after {@link over} has applied those options. */
export const bare = <Q>(queue: Q): Q => (OptionKind.isObject(queue) ? { ...queue, options: undefined } : queue)

/** Returns the error of a handler that is not a plain or async function; `undefined` if the handler is valid. */
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
    "handler must be a plain or async function, got a generator function",
    "Write async () => {}, or Effect.fn with Effect"
  )
}

/**
 * Checks the options and fills in their defaults; durations become milliseconds. `lease` is the lease of the broker's
 * deliveries, if they have one: it limits `handlerTimeout`.
 *
 * @throws RangeError when an option is unknown, of the wrong kind or out of range
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
    shareLimits,
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
    shareLimits: shareLimits === undefined ? undefined : ShareLimits.make(shareLimits),
    concurrency,
    onLimit,
    stackTraces
  }
}

/** Returns the longest run in milliseconds that leaves a tenth of the longest lease for settling. */
const longestIn = (lease: Lease | undefined): number =>
  lease === undefined ? Number.POSITIVE_INFINITY : lease.max * 0.9

/**
 * Fails when the broker cannot do what the options require, or when the queue is its own dead-letter queue. Consumers
 * call it before they subscribe.
 */
export const verify = (
  resolved: ReturnType<typeof resolve>,
  capabilities: Capabilities,
  queue: string
): Effect.Effect<void, ConfigurationError> => {
  const refusal = Feasibility.refusal(Feasibility.check(resolved, capabilities, queue), capabilities, queue)
  return refusal === undefined ? Effect.void : Effect.fail(refusal)
}
