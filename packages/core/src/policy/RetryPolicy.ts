/**
 * Retry policies: how often and when a failed message is retried, and where it is dead-lettered.
 *
 * A policy is plain immutable data, built by {@link make} or decoded from JSON by `PolicyConfig`. The pure function
 * {@link decide} turns a delivery and its failure into a settlement.
 */
import * as Predicate from "effect/Predicate"
import * as Backoff from "./Backoff.ts"
import * as Classifier from "./Classifier.ts"
import * as DeadLetterRouting from "./DeadLetterRouting.ts"
import * as Delay from "../message/Delay.ts"
import type { Failure } from "./Failure.ts"
import type { ErrorSummary, Reason } from "../message/Metadata.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as Settlement from "../message/Settlement.ts"
import { show } from "./internal/thrown.ts"
import * as StackTrace from "./StackTrace.ts"

export { describe, type Description, schedule, scheduleLimit, type Step } from "./internal/schedule.ts"

/** When a message is retried, and when it is dead-lettered. See {@link Options}. */
export interface RetryPolicy {
  /** Largest number of attempts, the first included; `Infinity`: unlimited. */
  readonly maxAttempts: number
  /** Largest number of deliveries of a message whose handler never ends; `Infinity`: unlimited. */
  readonly maxDeliveries: number
  /** Longest time from the first publish until a retry is due, in milliseconds; `Infinity`: unlimited. */
  readonly maxAge: number
  /** How often a failed handler runs again in the same delivery. */
  readonly immediate: number
  /** The delays of retries; `undefined`: the consumer's `retryDelay`, else no delay. */
  readonly backoff: Backoff.Backoff | undefined
  readonly classify: Classifier.Classifier
  readonly deadLetter: DeadLetterRouting.DeadLetterRouting
  /** Whether a dead letter holds up the later messages of its key. */
  readonly afterDeadLetter: "continue" | "park"
}

/** The limit of attempts: either `maxRetries` or `maxAttempts`. */
export type Limit =
  | {
      /** Largest number of retries of a message. Range: 0 or more, or `"unlimited"`. Default: 3. */
      readonly maxRetries?: number | "unlimited" | undefined
      readonly maxAttempts?: undefined
    }
  | {
      /** `maxRetries` plus 1: the same limit with the first delivery. Range: 1 or more, or `"unlimited"`. Default: 4. */
      readonly maxAttempts?: number | "unlimited" | undefined
      readonly maxRetries?: undefined
    }

/** The options of {@link make}. */
export type Options = Limit & {
  /**
   * A message with more deliveries is dead-lettered without a handler run, because it may crash its process. If
   * `maxDeliveries` equals `maxAttempts`, a restart can dead-letter a message that no handler has seen. Range: `maxAttempts` or more, or `"unlimited"`.
   * Default: `maxAttempts` + 10.
   */
  readonly maxDeliveries?: number | "unlimited" | undefined
  /**
   * Longest time from the first publish to a retry. Range: 0 or more; a number means milliseconds. Default:
   * no limit.
   */
  readonly maxAge?: Delay.DurationInput | undefined
  /**
   * How often a failed handler runs again in the same delivery. A timeout or the `rateLimit` prevents that. Range: 0 to
   * 10. Default: 0.
   */
  readonly immediate?: number | undefined
  /** Delays of retries, such as `exponential("1 second")`. Default: the consumer's `retryDelay`, else 0. */
  readonly backoff?: Backoff.Backoff | undefined
  /**
   * Which errors are not retried, or not counted by consumer backoff. Default: none, except errors with `permanent`,
   * and `DropError`.
   */
  readonly classify?: Classifier.Options | undefined
  /**
   * Name of the dead-letter queue, `"discard"` for none, or an object with `queue`, `routes`, `redact`. Default:
   * `<queue>.dlq`.
   */
  readonly deadLetter?: DeadLetterRouting.Options | undefined
  /**
   * The next message after a dead letter with a key: `"continue"` delivers the following one of the key, `"park"` holds up the key until
   * the letter is redriven or removed. A message that is dropped holds up none. Default: `"continue"`.
   */
  readonly afterDeadLetter?: "continue" | "park" | undefined
}

const limit = (min: number): OptionKind.OptionKind => ({
  expected: `a whole number >= ${min} or "unlimited"`,
  holds: (value) => value === "unlimited" || OptionKind.whole(min).holds(value)
})

/** A backoff of a config file is shown as it is written there. */
const shown = (value: unknown): string => (OptionKind.isObject(value) ? show(value) : OptionKind.show(value))

/** `true`: checked where it is built. */
const kinds: OptionNames.Of<Options> = {
  maxRetries: limit(0),
  maxAttempts: limit(1),
  maxDeliveries: true,
  maxAge: Delay.kind(0, Number.POSITIVE_INFINITY),
  immediate: OptionKind.whole(0, 10),
  backoff: {
    expected: "a backoff",
    // `make` checks it.
    holds: () => true,
    inside: {
      delay: (value) => `constant(${value})`,
      step: (value) => `linear(${value})`,
      base: (value) => `exponential(${value})`,
      delays: (value) => `sequence(${value})`,
      factor: (value) => `exponential("1 second", { factor: ${value} })`,
      max: (value) => `exponential("1 second", { max: ${value} })`,
      jitter: (value) => `exponential("1 second", { jitter: ${value} })`
    }
  },
  classify: true,
  deadLetter: true,
  afterDeadLetter: OptionKind.oneOf(["continue", "park"])
}

/** The default of `maxRetries`, if `maxAttempts` is not given either. */
export const defaultMaxRetries = 3

/** The default of `maxDeliveries` beyond the attempts. */
const crashes = 10

/**
 * Builds a retry policy.
 *
 * @throws RangeError when an option is unknown or out of range, both `maxRetries` and `maxAttempts` are given,
 * `backoff` was not made by a function of `Backoff`, or the name of a dead-letter queue is empty
 *
 * @example
 * ```ts
 * import { Backoff, RetryPolicy } from "@requeue/core"
 *
 * const policy = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.linear("10 seconds") })
 * RetryPolicy.schedule(policy).map(({ delay }) => delay) // => [[10000, 10000], [20000, 20000]]
 * ```
 */
export const make = (options: Options = {}): RetryPolicy => {
  OptionNames.check("RetryPolicy.make", options, kinds)
  const { backoff, immediate = 0 } = options
  if (backoff !== undefined && !Predicate.hasProperty(backoff, "curve")) {
    const problem = `backoff must be built, for example by exponential("1 second"), got ${shown(backoff)}`
    throw OptionNames.error("RetryPolicy.make", undefined, problem, 'Write backoff: exponential("1 second")')
  }
  const maxAttempts = attemptsOf(options)
  const { maxDeliveries = maxAttempts + crashes } = options
  return {
    maxAttempts,
    maxDeliveries: deliveriesOf(maxDeliveries, maxAttempts),
    maxAge: options.maxAge === undefined ? Number.POSITIVE_INFINITY : Math.ceil(Delay.toMillis(options.maxAge)),
    immediate,
    backoff,
    classify: Classifier.make(options.classify),
    deadLetter: DeadLetterRouting.make(options.deadLetter),
    afterDeadLetter: options.afterDeadLetter ?? "continue"
  }
}

/**
 * Returns a built policy unchanged, or builds one from options.
 *
 * @throws RangeError when the input is neither a built policy nor valid options
 */
export const from = (input: Options | RetryPolicy): RetryPolicy => (isBuilt(input) ? input : make(input))

/** The fields of a built policy. Options may have the same names, but not a built `deadLetter`. */
const fields = Object.keys(kinds).filter((name) => name !== "maxRetries")

const isBuilt = (input: Options | RetryPolicy): input is RetryPolicy =>
  Predicate.isObject(input) &&
  Object.keys(input).length === fields.length &&
  fields.every((name) => Object.hasOwn(input, name)) &&
  DeadLetterRouting.isRouting(input.deadLetter)

const attemptsOf = ({ maxAttempts, maxRetries }: Options): number => {
  if (maxAttempts !== undefined && maxRetries !== undefined) {
    throw new RangeError(
      `RetryPolicy.make: give maxRetries or maxAttempts, not both, got ${String(maxRetries)} and ${String(maxAttempts)}`
    )
  }
  return maxAttempts === undefined ? numberOf(maxRetries ?? defaultMaxRetries) + 1 : numberOf(maxAttempts)
}

const numberOf = (value: number | "unlimited"): number => (value === "unlimited" ? Number.POSITIVE_INFINITY : value)

const deliveriesOf = (value: number | "unlimited", min: number): number => {
  const refused = OptionNames.argument("RetryPolicy.make", "maxDeliveries", value, limit(min))
  if (value !== Number.POSITIVE_INFINITY) OptionNames.orThrow(refused)
  return numberOf(value)
}

/** Returns the queue for a dead letter from `queue` with this reason; `undefined` if the policy discards it. */
export const deadLetterQueue = (policy: RetryPolicy, queue: string, reason: Reason): string | undefined =>
  DeadLetterRouting.queueFor(policy.deadLetter, queue, reason)

/** Returns every queue that a dead letter from `queue` can go to. */
export const deadLetterQueues = (policy: RetryPolicy, queue: string): ReadonlyArray<string> =>
  DeadLetterRouting.queues(policy.deadLetter, queue)

/** The delivery that {@link decide} decides about. Delays and ages are in milliseconds. */
export interface RetryContext {
  readonly queue: string
  /** How often the message was delivered, this time included. */
  readonly attempts: number
  /** Time since the first publish. */
  readonly age: number
  /** The delay that the handler gave to `retry` or `retryAll`. */
  readonly delay: Delay.Delay | undefined
  /** Whether the handler called `retry` or `retryAll`: then the failure's classification does not matter. */
  readonly asked: boolean
  /** The failure of the message; `undefined` if the handler succeeded. */
  readonly failure: Failure | undefined
  /** The consumer's `retryDelay`. */
  readonly defaultDelay: Delay.Delay | undefined
  /** A random number from 0 (inclusive) to 1 (exclusive). */
  readonly random: number
}

/**
 * Returns the settlement of a message that is not retried, for this reason: a dead letter, or a drop if the policy
 * keeps no such dead letter. Both keep the redacted stack trace of the failure.
 */
export const giveUp = (
  policy: RetryPolicy,
  queue: string,
  reason: Reason,
  thrown: DeadLetterRouting.Thrown
): Settlement.Settlement => {
  const target = deadLetterQueue(policy, queue, reason)
  const safe = kept(policy, thrown)
  if (target === undefined) return Settlement.Drop(reason, safe)
  return Settlement.DeadLetter(reason, target, safe, policy.afterDeadLetter === "park")
}

/** Copies the error as plain data, because a settlement may wait for long. */
const kept = (policy: RetryPolicy, thrown: DeadLetterRouting.Thrown): ErrorSummary =>
  StackTrace.plain(DeadLetterRouting.redacted(policy.deadLetter, thrown))

const explicit: DeadLetterRouting.Thrown = {
  summary: { name: "Retry", message: "the handler called retry" }
}

/**
 * Decides the settlement of a delivery that failed, or whose handler called `retry`.
 *
 * It checks in this order: a failure classified `drop` or `dead-letter`, the limit of attempts, the limit of age. If
 * none applies, it returns a retry. The delay of the retry is the first that exists: the delay that the handler gave,
 * the failure's `retryAfter`, the backoff's delay, the consumer's `retryDelay`, 0.
 */
export const decide = (policy: RetryPolicy, context: RetryContext): Settlement.Settlement => {
  const { asked, attempts, failure, queue } = context
  const thrown = failure ?? explicit
  const classification = asked || failure === undefined ? "retry" : Classifier.classify(policy.classify, failure)
  if (classification === "drop") return Settlement.Drop("dropped", kept(policy, thrown))
  if (classification === "dead-letter") return giveUp(policy, queue, "permanent", thrown)
  // NaN attempts are not within the limit.
  if (!(attempts < policy.maxAttempts)) return giveUp(policy, queue, "retries-exhausted", thrown)
  const delay = Delay.first(
    context.delay,
    failure?.retryAfter,
    policy.backoff && Backoff.delayAfter(policy.backoff, attempts, context.random),
    context.defaultDelay
  )
  if (context.age + delay > policy.maxAge) return giveUp(policy, queue, "too-old", thrown)
  // A history has no stacks, so the stack of a retried failure is never formatted.
  const { chain, summary } = thrown
  return Settlement.Retry(delay, failure && DeadLetterRouting.redacted(policy.deadLetter, { chain, summary }))
}

/**
 * The default policy of Cloudflare Queues: 3 retries without delay.
 * https://developers.cloudflare.com/queues/configuration/batching-retries/
 */
export const cloudflareQueues: RetryPolicy = make({ maxRetries: 3 })

/**
 * The default policy of NSQ's clients: 5 attempts, each retried after 90 s x attempts, at most 15 minutes.
 * https://github.com/nsqio/go-nsq (Config: DefaultRequeueDelay, MaxRequeueDelay, MaxAttempts)
 */
export const nsqRequeue: RetryPolicy = make({
  maxAttempts: 5,
  backoff: Backoff.linear("90 seconds", { max: "15 minutes" })
})

/**
 * A schedule of webhook senders: retries after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h, each longer or shorter by
 * up to 10 %. https://docs.svix.com/retries
 */
export const webhookSender: RetryPolicy = make({
  maxRetries: 7,
  backoff: Backoff.sequence(["5 seconds", "5 minutes", "30 minutes", "2 hours", "5 hours", "10 hours", "10 hours"], {
    jitter: { proportional: 0.1 }
  })
})

/**
 * A growing retry as with Spring AMQP on RabbitMQ: 10 retries, the first after 1 s, each further one after 1.5 times
 * the last delay, at most 1 minute.
 * https://docs.spring.io/spring-amqp/reference/amqp/resilience-recovering-from-errors-and-broker-failures.html
 */
export const rabbitMqGrowing: RetryPolicy = make({
  maxRetries: 10,
  backoff: Backoff.exponential("1 second", { factor: 1.5, max: "1 minute" })
})
