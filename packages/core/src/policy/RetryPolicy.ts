/**
 * Retry policies: how often a failed message is delivered again, when, and where it goes when all is in vain.
 *
 * A policy is plain immutable data, built by {@link make} or decoded from JSON by `PolicyConfig`, and {@link decide} is
 * the one pure function that turns what happened to a delivery into its settlement.
 */
import * as Backoff from "./Backoff.ts"
import * as Classifier from "./Classifier.ts"
import * as DeadLetterRouting from "./DeadLetterRouting.ts"
import * as Delay from "../message/Delay.ts"
import type { Failure } from "./Failure.ts"
import type { ErrorSummary, Reason } from "../message/Metadata.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as Settlement from "../message/Settlement.ts"

export interface RetryPolicy {
  /** Deliveries allowed, the first included; `Infinity` when unlimited. */
  readonly maxAttempts: number
  /** Milliseconds since the first publish after which no retry may become due; `Infinity` when unlimited. */
  readonly maxAge: number
  /** Fresh handler runs in the same delivery, before a failure counts as the delivery's. */
  readonly immediate: number
  /** `undefined`: the consumer's `retryDelay`, else at once. */
  readonly backoff: Backoff.Backoff | undefined
  readonly classify: Classifier.Classifier
  readonly deadLetter: DeadLetterRouting.DeadLetterRouting
}

/** Retries after the first delivery, or deliveries with the first: the same limit, given once. */
export type Limit =
  | { readonly maxRetries?: number | "unlimited" | undefined; readonly maxAttempts?: undefined }
  | { readonly maxAttempts?: number | "unlimited" | undefined; readonly maxRetries?: undefined }

export type Options = Limit & {
  /** No retry becomes due later than this after the first publish. Default: no limit. */
  readonly maxAge?: Delay.Input | undefined
  /** In-process retries per delivery, 0 to 10; none after a handler timeout. Default 0. */
  readonly immediate?: number | undefined
  /** Default: none, so the consumer's `retryDelay`, else the next delivery is at once. */
  readonly backoff?: Backoff.Backoff | undefined
  readonly classify?: Partial<Classifier.Classifier> | undefined
  /** A queue name, `"discard"`, or details. Default: `<queue>.dlq`. */
  readonly deadLetter?: DeadLetterRouting.Options | undefined
}

const names: OptionNames.Of<Options> = {
  maxRetries: true,
  maxAttempts: true,
  maxAge: true,
  immediate: true,
  backoff: true,
  classify: true,
  deadLetter: true
}

/** Retries of a policy that names no limit. */
export const defaultMaxRetries = 3

/**
 * Builds a policy.
 *
 * Defaults: `maxRetries` 3, no maximal age, no immediate retries, no backoff, dead letters to `<queue>.dlq`.
 *
 * @throws RangeError when an option is unknown; when both limits are given, or one is not a whole number (retries >= 0, attempts >= 1) or
 * `"unlimited"`; when `maxAge` is negative, `immediate` is not 0 to 10, `backoff` is none, or a queue name is empty
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
  OptionNames.check("RetryPolicy.make", options, names)
  const { backoff, immediate = 0 } = options
  if (!(Number.isSafeInteger(immediate) && immediate >= 0 && immediate <= 10)) {
    throw new RangeError(`RetryPolicy.make: immediate must be a whole number from 0 to 10, got ${immediate}`)
  }
  if (backoff !== undefined && !Object.hasOwn(Object(backoff) as object, "curve")) {
    const got = typeof backoff === "string" ? backoff : JSON.stringify(backoff)
    throw new RangeError(`RetryPolicy.make: backoff must be built, for example by exponential("1 second"), got ${got}`)
  }
  return {
    maxAttempts: attemptsOf(options),
    maxAge:
      options.maxAge === undefined
        ? Number.POSITIVE_INFINITY
        : Delay.constrain("RetryPolicy.make: maxAge", options.maxAge, 0, Number.POSITIVE_INFINITY),
    immediate,
    backoff,
    classify: Classifier.make(options.classify),
    deadLetter: DeadLetterRouting.make(options.deadLetter)
  }
}

/** A policy as it is, or built from its options. */
export const from = (input: Options | RetryPolicy): RetryPolicy => (isBuilt(input) ? input : make(input))

const isBuilt = (input: Options | RetryPolicy): input is RetryPolicy =>
  typeof input.deadLetter === "object" && "discard" in input.deadLetter

const attemptsOf = ({ maxAttempts, maxRetries }: Options): number => {
  if (maxAttempts !== undefined && maxRetries !== undefined) {
    throw new RangeError(
      `RetryPolicy.make: give maxRetries or maxAttempts, not both, got ${String(maxRetries)} and ${String(maxAttempts)}`
    )
  }
  if (maxAttempts !== undefined) return limit("maxAttempts", maxAttempts, 1)
  return limit("maxRetries", maxRetries ?? defaultMaxRetries, 0) + 1
}

const limit = (field: string, value: number | "unlimited", min: number): number => {
  if (value === "unlimited") return Number.POSITIVE_INFINITY
  if (Number.isSafeInteger(value) && value >= min) return value
  throw new RangeError(`RetryPolicy.make: ${field} must be a whole number >= ${min} or "unlimited", got ${value}`)
}

/** The queue that takes a dead letter of this reason; `undefined` when the policy discards it. */
export const deadLetterQueue = (policy: RetryPolicy, queue: string, reason: Reason): string | undefined =>
  DeadLetterRouting.queueFor(policy.deadLetter, queue, reason)

/** Every queue that a dead letter of this consumer can go to. */
export const deadLetterQueues = (policy: RetryPolicy, queue: string): ReadonlyArray<string> =>
  DeadLetterRouting.queues(policy.deadLetter, queue)

/** What is known of a delivery when its settlement is decided. */
export interface Facts {
  readonly queue: string
  readonly attempts: number
  /** Milliseconds since the first publish. */
  readonly age: number
  /** The delay of an explicit `retry` or `retryAll`. */
  readonly delay: Delay.Delay | undefined
  /** True when the handler asked for the retry itself; then the failure's classification does not matter. */
  readonly asked: boolean
  /** How the handler failed, if it did. */
  readonly failure: Failure | undefined
  /** The consumer's `retryDelay`. */
  readonly defaultDelay: Delay.Delay | undefined
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: number
}

/** Where a message goes that is given up for this reason. */
export const giveUp = (
  policy: RetryPolicy,
  queue: string,
  reason: Reason,
  error: ErrorSummary
): Settlement.Settlement => {
  const target = deadLetterQueue(policy, queue, reason)
  const safe = DeadLetterRouting.redacted(policy.deadLetter, error)
  return target === undefined ? Settlement.Drop(reason, safe) : Settlement.DeadLetter(reason, target, safe)
}

const explicit: ErrorSummary = { name: "Retry", message: "the handler asked for a retry" }

/**
 * The settlement of a delivery that is to be tried again: by an explicit `retry` or by a failure.
 *
 * In this order: a failure that is classified away from retrying; the limit of attempts; the delay, being the first of
 * the explicit one, the failure's `retryAfter`, the backoff's, the consumer's, 0; the limit of age.
 */
export const decide = (policy: RetryPolicy, facts: Facts): Settlement.Settlement => {
  const { asked, attempts, failure, queue } = facts
  const error = failure?.summary ?? explicit
  const classification = asked || failure === undefined ? "retry" : Classifier.classify(policy.classify, failure)
  if (classification === "drop") return Settlement.Drop("dropped", DeadLetterRouting.redacted(policy.deadLetter, error))
  if (classification === "dead-letter") return giveUp(policy, queue, "permanent", error)
  if (attempts >= policy.maxAttempts) return giveUp(policy, queue, "retries-exhausted", error)
  const delay = Delay.first(
    facts.delay,
    failure?.retryAfter,
    policy.backoff && Backoff.delayAfter(policy.backoff, attempts, facts.random),
    facts.defaultDelay
  )
  if (facts.age + delay > policy.maxAge) return giveUp(policy, queue, "too-old", error)
  return Settlement.Retry(delay, failure && DeadLetterRouting.redacted(policy.deadLetter, error))
}

/** One retry of a policy's schedule. */
export interface Step {
  /** The attempt that fails, 1 for the first delivery. */
  readonly attempt: number
  /** Shortest and longest delay until the next delivery, in milliseconds. */
  readonly delay: readonly [number, number]
  /** Shortest and longest time since the first delivery at which the next one happens, without the handler's own. */
  readonly elapsed: readonly [number, number]
}

/** How many steps {@link schedule} lists of an unlimited policy. */
export const scheduleLimit = 100

/** Every retry of the policy with its delays; of an unlimited policy the first 100. */
export const schedule = (policy: RetryPolicy, defaultDelay: Delay.Delay = 0): ReadonlyArray<Step> => {
  const steps: Array<Step> = []
  let [low, high] = [0, 0]
  for (let attempt = 1; attempt < policy.maxAttempts && attempt <= scheduleLimit; attempt++) {
    const delay =
      policy.backoff === undefined ? ([defaultDelay, defaultDelay] as const) : Backoff.range(policy.backoff, attempt)
    low += delay[0]
    high += delay[1]
    if (low > policy.maxAge) break
    steps.push({ attempt, delay, elapsed: [low, Math.min(high, policy.maxAge)] })
  }
  return steps
}

/** What a policy amounts to. */
export interface Description {
  readonly schedule: ReadonlyArray<Step>
  /** Most handler runs of one message: deliveries times in-process runs; `Infinity` when unlimited. */
  readonly handlerRuns: number
  /**
   * Longest time from first to last delivery, without the handler's own time and waiting in the queue. Beyond the
   * schedule's 100 steps, every delay is taken for the longest.
   */
  readonly worstCase: number
  /** All of it in one line, as the consumer logs it at start. */
  readonly text: string
}

const longestElapsed = (policy: RetryPolicy, steps: ReadonlyArray<Step>, defaultDelay: Delay.Delay): number => {
  const listed = steps.at(-1)?.elapsed[1] ?? 0
  if (steps.length < scheduleLimit) return listed
  const unlisted = policy.maxAttempts - 1 - steps.length
  if (unlisted === Number.POSITIVE_INFINITY) return policy.maxAge
  const longest = policy.backoff === undefined ? defaultDelay : Backoff.longest(policy.backoff)
  return Math.min(listed + unlisted * longest, policy.maxAge)
}

/** The schedule, the total of handler runs and the worst-case elapsed time of a policy. */
export const describe = (policy: RetryPolicy, defaultDelay: Delay.Delay = 0): Description => {
  const steps = schedule(policy, defaultDelay)
  const handlerRuns = policy.maxAttempts * (policy.immediate + 1)
  const worstCase = longestElapsed(policy, steps, defaultDelay)
  const delays = steps.slice(0, 8).map(({ delay: [low, high] }) => {
    return low === high ? Delay.format(high) : `${Delay.format(low)}..${Delay.format(high)}`
  })
  const retries = policy.maxAttempts - 1
  const listed = delays.length === 0 ? "" : `: ${delays.join(", ")}${retries > delays.length ? ", …" : ""}`
  return {
    schedule: steps,
    handlerRuns,
    worstCase,
    text:
      `${retries === Number.POSITIVE_INFINITY ? "unlimited" : retries} retries${listed}; ` +
      `at most ${handlerRuns === Number.POSITIVE_INFINITY ? "unlimited" : handlerRuns} handler runs ` +
      `over ${Delay.format(worstCase)}`
  }
}

/**
 * What Cloudflare Queues does by default: 3 retries, at once, in batches.
 * https://developers.cloudflare.com/queues/configuration/batching-retries/
 */
export const cloudflareQueues: RetryPolicy = make({ maxRetries: 3 })

/**
 * What NSQ's own clients do: requeue after 90 s x attempts, at most 15 minutes, give up after 5 attempts.
 * https://github.com/nsqio/go-nsq (Config: DefaultRequeueDelay, MaxRequeueDelay, MaxAttempts)
 */
export const nsqRequeue: RetryPolicy = make({
  maxAttempts: 5,
  backoff: Backoff.linear("90 seconds", { max: "15 minutes" })
})

/**
 * The growing schedule of webhook senders: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h, spread by 10 %.
 * https://docs.svix.com/retries
 */
export const webhookSender: RetryPolicy = make({
  maxRetries: 7,
  backoff: Backoff.sequence(["5 seconds", "5 minutes", "30 minutes", "2 hours", "5 hours", "10 hours", "10 hours"], {
    jitter: { proportional: 0.1 }
  })
})

/**
 * The growing retry that Spring AMQP users configure on RabbitMQ: 1 s x 1.5 each time, at most 1 minute, 10 retries.
 * https://docs.spring.io/spring-amqp/reference/amqp/resilience-recovering-from-errors-and-broker-failures.html
 */
export const rabbitMqGrowing: RetryPolicy = make({
  maxRetries: 10,
  backoff: Backoff.exponential("1 second", { factor: 1.5, max: "1 minute" })
})
