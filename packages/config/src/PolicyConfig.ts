/**
 * Policies from configuration: schemas that decode plain JSON through the policies' own constructors.
 *
 * When to use: when policies come from a file, the environment (`Config.schema`), or a database, not from code. The
 * shape is that of the constructors' options. A duration is a number of milliseconds or text such as `"10 seconds"`; `type` is
 * the kind of a backoff. An unknown key is an error, and so is anything that a constructor refuses: its message is reported at
 * the path of the field.
 *
 * Functions (`classify.with`, `deadLetter.redact`, `onEvent`) have no JSON form: add them to the decoded options.
 *
 * @example
 * ```ts
 * import { PolicyConfig } from "@requeue/config"
 * import { Schema } from "effect"
 *
 * const policy = Schema.decodeUnknownSync(PolicyConfig.RetryPolicy)({
 *   maxRetries: 5,
 *   backoff: { type: "exponential", base: "1 second", max: "5 minutes", jitter: "full" },
 *   classify: { permanent: ["ValidationError"] },
 *   deadLetter: "orders.dead"
 * })
 * policy.maxAttempts // => 6
 * ```
 */
import {
  Backoff as Backoffs,
  BatchPolicy as BatchPolicies,
  ConsumerBackoff as ConsumerBackoffs,
  DeadLetterBudget as DeadLetterBudgets,
  RateLimit as RateLimits,
  ShareLimits as SharesLimits,
  type Delay,
  type Jitter,
  RetryPolicy as RetryPolicies
} from "@requeue/core"
import { ConsumerOptions } from "@requeue/core/port"
import * as Schema from "effect/Schema"
import { struct as strict, through } from "./StrictSchema.ts"

/** Milliseconds, or text such as `"10 seconds"`. */
export type DurationJson = number | string

/** Milliseconds, or text such as `"10 seconds"`. */
// Cast, because any text is accepted here: the constructors check durations.
export const Duration = Schema.Union([Schema.Finite, Schema.String]) as unknown as Schema.Codec<
  Delay.DurationInput,
  DurationJson
>

const Limit = Schema.Union([Schema.Finite, Schema.Literal("unlimited")])

const Names = Schema.Array(Schema.String)

const spread = {
  max: Schema.optionalKey(Duration),
  jitter: Schema.optionalKey(
    Schema.Union([Schema.Literals(["none", "full", "equal", "decorrelated"]), strict({ proportional: Schema.Finite })])
  )
}

/** A backoff, as JSON. */
export type BackoffJson =
  | (SpreadJson & { readonly type: "constant"; readonly delay: DurationJson })
  | (SpreadJson & { readonly type: "linear"; readonly step: DurationJson })
  | (SpreadJson & { readonly type: "exponential"; readonly base: DurationJson; readonly factor?: number })
  | (SpreadJson & { readonly type: "sequence"; readonly delays: ReadonlyArray<DurationJson> })
  | { readonly type: "switch"; readonly after: number; readonly first: BackoffJson; readonly next: BackoffJson }

interface SpreadJson {
  readonly max?: DurationJson
  readonly jitter?: Jitter.Jitter
}

const Nested = Schema.suspend((): Schema.Codec<Backoffs.Backoff, BackoffJson> => Backoff)

/**
 * Decodes a backoff: `{ "type": "exponential", "base": "1 second", "factor": 2, "max": "5 minutes", "jitter": "full" }`, or
 * `constant` with `delay`, `linear` with `step`, `sequence` with `delays`, `switch` with `after`, `first` and `next`.
 */
export const Backoff: Schema.Codec<Backoffs.Backoff, BackoffJson> = Schema.Union([
  strict({ type: Schema.Literal("constant"), delay: Duration, ...spread }).pipe(
    through("Constant", ({ delay, type: _type, ...options }) => Backoffs.constant(delay, options))
  ),
  strict({ type: Schema.Literal("linear"), step: Duration, ...spread }).pipe(
    through("Linear", ({ step, type: _type, ...options }) => Backoffs.linear(step, options))
  ),
  strict({
    type: Schema.Literal("exponential"),
    base: Duration,
    factor: Schema.optionalKey(Schema.Finite),
    ...spread
  }).pipe(through("Exponential", ({ base, type: _type, ...options }) => Backoffs.exponential(base, options))),
  strict({ type: Schema.Literal("sequence"), delays: Schema.Array(Duration), ...spread }).pipe(
    through("Sequence", ({ delays, type: _type, ...options }) => Backoffs.sequence(delays, options))
  ),
  strict({ type: Schema.Literal("switch"), after: Schema.Finite, first: Nested, next: Nested }).pipe(
    through("Switch", ({ after, first, next }) => Backoffs.switchAfter(after, first, next))
  )
]).annotate({
  identifier: "Backoff",
  message: "a backoff must be an object whose type is constant, linear, exponential, sequence or switch"
})

const presets = {
  cloudflareQueues: RetryPolicies.cloudflareQueues,
  nsqRequeue: RetryPolicies.nsqRequeue,
  webhookSender: RetryPolicies.webhookSender,
  rabbitMqGrowing: RetryPolicies.rabbitMqGrowing
}

/**
 * Decodes the options of `RetryPolicy.make`, except functions. `preset` is a policy to start from; every other key replaces
 * a part of it.
 */
export const RetryPolicy = strict({
  preset: Schema.optionalKey(Schema.Literals(["cloudflareQueues", "nsqRequeue", "webhookSender", "rabbitMqGrowing"])),
  maxRetries: Schema.optionalKey(Limit),
  maxAttempts: Schema.optionalKey(Limit),
  maxDeliveries: Schema.optionalKey(Limit),
  maxAge: Schema.optionalKey(Duration),
  immediate: Schema.optionalKey(Schema.Finite),
  backoff: Schema.optionalKey(Backoff),
  classify: Schema.optionalKey(
    strict({
      permanent: Schema.optionalKey(Names),
      drop: Schema.optionalKey(Names),
      uncounted: Schema.optionalKey(Names)
    })
  ),
  deadLetter: Schema.optionalKey(
    Schema.Union([
      Schema.String,
      strict({
        queue: Schema.optionalKey(Schema.String),
        routes: Schema.optionalKey(
          strict({
            "retries-exhausted": Schema.optionalKey(Schema.String),
            permanent: Schema.optionalKey(Schema.String),
            undecodable: Schema.optionalKey(Schema.String),
            "too-old": Schema.optionalKey(Schema.String),
            "too-many-deliveries": Schema.optionalKey(Schema.String)
          })
        )
      })
    ])
  ),
  afterDeadLetter: Schema.optionalKey(Schema.Literals(["continue", "park"]))
}).pipe(
  through("RetryPolicy", ({ preset, ...options }): RetryPolicies.RetryPolicy => {
    const base = preset && presets[preset]
    const isLimited = options.maxRetries !== undefined || options.maxAttempts !== undefined
    const { maxAttempts } = base ?? {}
    const limited = isLimited || maxAttempts === undefined ? options : { ...options, maxAttempts }
    const made = RetryPolicies.make(limited as unknown as RetryPolicies.Options) // It checks what these types forbid.
    if (base === undefined) return made
    const given = new Set([...Object.keys(options), ...(isLimited ? ["maxAttempts", "maxDeliveries"] : [])])
    const parts = Object.entries(made).filter(([part]) => given.has(part))
    return { ...base, ...Object.fromEntries(parts) }
  })
)

/** Decodes the options of `BatchPolicy.make`. */
export const BatchPolicy = strict({
  maxBatchSize: Schema.optionalKey(Schema.Finite),
  maxBatchTimeout: Schema.optionalKey(Duration)
}).pipe(through("BatchPolicy", BatchPolicies.make))

/** Decodes the options of `ConsumerBackoff.make`. */
export const ConsumerBackoff = strict({
  form: Schema.optionalKey(Schema.Literals(ConsumerBackoffs.forms)),
  failures: Schema.optionalKey(Schema.Finite),
  failureRatio: Schema.optionalKey(Schema.Finite),
  minAttempts: Schema.optionalKey(Schema.Finite),
  window: Schema.optionalKey(Schema.Union([Schema.Finite, Schema.String, strict({ attempts: Schema.Finite })])),
  multiplier: Schema.optionalKey(Duration),
  maxBackoffDuration: Schema.optionalKey(Duration),
  strategy: Schema.optionalKey(Schema.Literals(["exponential", "full-jitter"])),
  recovery: Schema.optionalKey(Schema.Literals(["resume", "stepwise"]))
}).pipe(
  through(
    "ConsumerBackoff",
    (options) => ConsumerBackoffs.make(options as ConsumerBackoffs.Options) // It checks what these types forbid.
  )
)

/** Decodes a budget of dead letters, such as `{ "max": 100, "perSuccess": 0.1 }`. */
export const DeadLetterBudget = strict({
  max: Schema.Finite,
  perSuccess: Schema.optionalKey(Schema.Finite)
}).pipe(through("DeadLetterBudget", DeadLetterBudgets.make))

/** Decodes a rate limit, such as `{ "max": 10, "per": "1 second" }`. */
export const RateLimit = strict({ max: Schema.Finite, per: Duration }).pipe(through("RateLimit", RateLimits.make))

/** Decodes the limits of shares, such as `{ "concurrency": 2 }`. */
export const ShareLimits = strict({
  concurrency: Schema.optionalKey(Schema.Finite),
  rateLimit: Schema.optionalKey(RateLimit)
}).pipe(through("ShareLimits", SharesLimits.make))

/** The fields of {@link Consumer}, for structs that have further fields. */
export const consumerFields = {
  retry: Schema.optionalKey(RetryPolicy),
  retryDelay: Schema.optionalKey(Duration),
  batch: Schema.optionalKey(BatchPolicy),
  concurrency: Schema.optionalKey(Schema.Finite),
  prefetch: Schema.optionalKey(Schema.Finite),
  rateLimit: Schema.optionalKey(RateLimit),
  shareLimits: Schema.optionalKey(ShareLimits),
  handlerTimeout: Schema.optionalKey(Duration),
  consumerBackoff: Schema.optionalKey(ConsumerBackoff),
  deadLetterBudget: Schema.optionalKey(DeadLetterBudget),
  drainTimeout: Schema.optionalKey(Duration),
  onLimit: Schema.optionalKey(Schema.Literals(["fail", "clamp"])),
  stackTraces: Schema.optionalKey(Schema.Boolean)
}

/** Decodes the options of `Consumer.start`, except `onEvent`. */
export const Consumer = strict(consumerFields).pipe(
  through("ConsumerOptions", (options): ConsumerOptions.Options => {
    // For its checks: a bad option is an error of the configuration, not of the consumer that it is for.
    ConsumerOptions.resolve(options)
    return options
  })
)
