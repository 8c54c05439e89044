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
import * as RetryPolicy from "../policy/RetryPolicy.ts"

/** Options that consumers and pullers share, without their policies. */
export interface Intake {
  /**
   * The delay of a retry when the handler, its error and the policy give none, 0 to 24 hours; a number counts
   * milliseconds. Default 0.
   */
  readonly retryDelay?: Delay.DurationInput | undefined
  /** How many messages the consumer may dead-letter before it stops. Default: any number. */
  readonly deadLetterBudget?: DeadLetterBudget.Options | undefined
  /**
   * How long a shutdown waits for running handlers before it interrupts them, 0 to 24 hours; a number counts
   * milliseconds. Settlements then get the same time, but at least 1 second and at most 5. The broker redelivers messages
   * that are still unsettled. Default 30 seconds.
   */
  readonly drainTimeout?: Delay.DurationInput | undefined
  /**
   * How to treat delays that the broker cannot keep: `"fail"` refuses to start, `"clamp"` shortens them to the
   * longest possible delay. Default `"fail"`.
   */
  readonly onLimit?: "fail" | "clamp" | undefined
  /**
   * Whether failures keep their stack traces in the log, events, spans and dead letters. The policy's `redact` can still
   * remove them. Default true.
   */
  readonly stackTraces?: boolean | undefined
  /** Called with every event of every message. Default: none. */
  readonly onEvent?: Hook | undefined
}

/** Options of consumers, without their policies. */
export interface Running extends Intake {
  /** How many batches may be in progress at a time, 1 to 1,000. Default 1. */
  readonly concurrency?: number | undefined
  /**
   * How many messages to fetch ahead of those in progress, 0 to 10,000. With 0, no message waits for a slow handler while
   * another consumer is idle, but each message costs a round trip to the broker. Default: one batch.
   */
  readonly prefetch?: number | undefined
  /**
   * How many handler runs may begin in any window, such as `{ max: 10, per: "1 second" }`. A batch is one run. An immediate
   * retry is another one, and is skipped when the limit is reached. The broker keeps the messages that exceed the limit. Each
   * consumer counts only its own runs, so divide the limit among processes. Default: no limit.
   */
  readonly rateLimit?: RateLimit.Options | undefined
  /**
   * The longest run of a handler, 1 ms to 12 hours, or `"unlimited"`; a number counts milliseconds. A longer run is
   * interrupted and counts as failed. Default 10 minutes, or nine tenths of the broker's longest lease if that is less.
   */
  readonly handlerTimeout?: Delay.DurationInput | "unlimited" | undefined
}

/** Policies, built by their modules. */
export interface Policies {
  /**
   * When and how often a failed message is retried, and where it is dead-lettered. Default: 3 retries without a delay,
   * then the queue `<queue>.dlq`.
   */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /**
   * How batches are filled. Default: single messages for a message handler; 10 messages or 5 seconds for a batch handler.
   */
  readonly batch?: BatchPolicy | undefined
  /** When the whole consumer pauses because messages fail. Default: never. */
  readonly consumerBackoff?: ConsumerBackoff | undefined
}

/** Options of a consumer. All are optional. */
export interface Options extends Policies, Running {}

/** The default of `handlerTimeout` in milliseconds, if the broker's longest lease allows it: 10 minutes. */
export const defaultHandlerTimeout = 10 * 60_000

const handlerTimeout = Delay.kind(1, 12 * 60 * 60_000)

/** All options and their kinds. */
export const kinds: OptionNames.Of<Options> = {
  retry: OptionKind.object("a policy, made by RetryPolicy.make", "maxAttempts", "deadLetter"),
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
 * Checks the options and fills in their defaults; durations become milliseconds. `lease` is the broker's, if it has one.
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
