/** Options of the Promise face and their kinds: those of the modules behind it, with policies as plain objects. */
import type * as LogLevel from "effect/LogLevel"
import * as ConsumerOptions from "../../consume/ConsumerOptions.ts"
import * as Puller from "../../consume/Puller.ts"
import * as Delay from "../../message/Delay.ts"
import * as LoggerLike from "../../observe/LoggerLike.ts"
import type * as Telemetry from "../../observe/Telemetry.ts"
import type { Adapter } from "../../port/Adapter.ts"
import * as OptionKind from "../../options/OptionKind.ts"
import * as OptionNames from "../../options/OptionNames.ts"
import * as Limits from "../../produce/internal/limits.ts"
import * as BatchPolicy from "../../policy/BatchPolicy.ts"
import * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import * as RateLimit from "../../policy/RateLimit.ts"
import * as RetryPolicy from "../../policy/RetryPolicy.ts"

/** Policies as plain objects. */
export interface Policies {
  /**
   * When and how often a failed message is retried, and where it is dead-lettered, such as `{ maxRetries: 5, backoff:
   * exponential("1 second") }`. Default: 3 retries at once, then the queue `<queue>.dlq`.
   */
  // A built policy has this type, too. A union would hide the docstrings in editors.
  readonly retry?: RetryPolicy.Options | undefined
  /**
   * How messages are gathered into batches, such as `{ maxBatchSize: 50 }`. Default: single messages for `consume`; 10
   * messages or 5 seconds for `consumeBatch` and pullers.
   */
  readonly batch?: BatchPolicy.Options | undefined
  /**
   * When the whole consumer pauses because its messages fail: `true` for the defaults, or options such as
   * `{ form: "ratio" }`. Default: never.
   */
  readonly consumerBackoff?: ConsumerBackoff.Options | boolean | undefined
}

/** See `Consumer.Options`. */
export interface ConsumeOptions extends Policies, ConsumerOptions.Running {}

/** See `Puller.Options`. */
export interface PullerOptions extends Policies, Puller.Pulling {}

/** How a connection sends, logs and is observed, and which further adapters it uses. */
export interface ConnectOptions extends Limits.Options {
  /** Adapters by other authors, or in a bundle. Default: none; a scheme that none serves imports its package. */
  readonly adapters?: ReadonlyArray<Adapter> | undefined
  /**
   * Where the log goes: `"json"` for lines of JSON on standard error, `false` for silence, or a logger, such as pino's or winston's,
   * `console`, or one of Effect. What it throws harms no message. Default: lines of `key=value` pairs on standard error.
   */
  readonly logger?: LoggerLike.LogTarget | undefined
  /** Lowest level that is logged. Default: `"Info"` with a `logger` that is an object, which has its own level; else `"Warn"`. */
  readonly logLevel?: LogLevel.LogLevel | undefined
  /**
   * How long `connect` waits for an unreachable broker, such as one that starts after the program: up to 24 hours, a number
   * counts milliseconds. It logs the reason at once, and the last one every 5 seconds. 0: one attempt, as long as the adapter's
   * own limit. It never waits for mistakes: a wrong option or URL, refused credentials, an untrusted certificate, a port of
   * another protocol. SQS, which has no connection, is asked for an answer, except with 0. Default: 30 seconds.
   */
  readonly waitForBroker?: Delay.DurationInput | undefined
  /** For example `OpenTelemetry.make()` of `@requeue/opentelemetry`. Default: none, which costs nothing. */
  readonly telemetry?: Telemetry.Service | undefined
}

const policyKinds: OptionNames.Of<Policies> = {
  retry: OptionKind.object("an object such as { maxRetries: 5 }, or { maxRetries: 0 } for none"),
  batch: OptionKind.object("an object such as { maxBatchSize: 10 }"),
  consumerBackoff: {
    expected: 'true, false, or an object such as { form: "consecutive" }',
    holds: (value) => typeof value === "boolean" || OptionKind.isObject(value),
    remedy: (value) => {
      const form = ConsumerBackoff.forms.find((each) => each === value)
      return form && `Write { form: "${form}" }`
    }
  }
}

const consumeKinds: OptionNames.Of<ConsumeOptions> = {
  ...ConsumerOptions.kinds,
  ...policyKinds
}

const pullerKinds: OptionNames.Of<PullerOptions> = {
  ...Puller.kinds,
  ...policyKinds
}

const connectKinds: OptionNames.Of<ConnectOptions> = {
  ...Limits.kinds,
  adapters: OptionKind.list,
  logger: LoggerLike.kind,
  logLevel: OptionKind.oneOf(["All", "Fatal", "Error", "Warn", "Info", "Debug", "Trace", "None"]),
  waitForBroker: Delay.kind(0, Delay.max),
  telemetry: OptionKind.object("what OpenTelemetry.make() returns, or another telemetry", "send", "consumer")
}

/** @throws RangeError for a wrong option of `connect` */
export const connect = (options: ConnectOptions): void => OptionNames.check("connect", options, connectKinds)

/**
 * Returns the options of a consumer with built policies.
 *
 * @throws RangeError for a wrong option or an invalid handler
 */
export const consume = (call: string, queue: OptionNames.Queue, options: ConsumeOptions, handler: unknown) => {
  OptionNames.orThrow(ConsumerOptions.handlerRefusal(call, queue, options, handler))
  OptionNames.check(call, options, consumeKinds, queue)
  const { rateLimit } = options
  return {
    ...withPolicies(call, queue, options),
    rateLimit: rateLimit && within(call, queue, "rateLimit", () => RateLimit.make(rateLimit))
  }
}

/**
 * Returns the options of a puller with built policies.
 *
 * @throws RangeError for a wrong option
 */
export const puller = (queue: OptionNames.Queue, options: PullerOptions) => {
  OptionNames.check("requeue.puller", options, pullerKinds, queue)
  return withPolicies("requeue.puller", queue, options)
}

const withPolicies = <O extends Policies>(call: string, queue: OptionNames.Queue, options: O) => {
  const { batch, consumerBackoff, retry } = options
  const build = <A>(option: string, make: () => A): A => within(call, queue, option, make)
  return {
    ...options,
    retry: retry && build("retry", () => RetryPolicy.from(retry)),
    batch: batch && build("batch", () => BatchPolicy.make(batch)),
    consumerBackoff: build("consumerBackoff", () => backoffOf(consumerBackoff))
  }
}

const backoffOf = (wanted: Policies["consumerBackoff"]): ConsumerBackoff.ConsumerBackoff | undefined =>
  wanted === undefined || wanted === false ? undefined : ConsumerBackoff.make(wanted === true ? {} : wanted)

/** Makes a policy's error name the call and the option, instead of a constructor that the user did not call. */
const within = <A>(call: string, queue: OptionNames.Queue, option: string, make: () => A): A => {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw OptionNames.error(call, queue, `${option}: ${error.message.replace(/^\w+\.\w+: /, "")}`)
  }
}
