/** Options of the Promise API and their kinds: those of the modules that it calls, with policies as plain objects. */
import type * as Layer from "effect/Layer"
import type * as LogLevel from "effect/LogLevel"
import * as ConsumerOptions from "../../consume/ConsumerOptions.ts"
import * as Puller from "../../consume/Puller.ts"
import * as Delay from "../../message/Delay.ts"
import * as LoggerLike from "../../observe/LoggerLike.ts"
import type * as Telemetry from "../../observe/Telemetry.ts"
import type { Adapter, connectOptions } from "../../port/Adapter.ts"
import type { Broker } from "../../port/Broker.ts"
import type * as Adapters from "../Adapters.ts"
import * as OptionKind from "../../options/OptionKind.ts"
import * as OptionNames from "../../options/OptionNames.ts"
import { withoutPassword } from "../../options/urlPassword.ts"
import * as Limits from "../../produce/internal/limits.ts"
import * as BatchPolicy from "../../policy/BatchPolicy.ts"
import * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import * as RateLimit from "../../policy/RateLimit.ts"
import * as ShareLimits from "../../policy/ShareLimits.ts"
import { inside } from "../../policy/internal/retryNames.ts"
import * as RetryPolicy from "../../policy/RetryPolicy.ts"
import * as Relay from "../../store/Relay.ts"
import * as Store from "../../store/Store.ts"

/** Policies as plain objects. */
export interface Policies {
  /**
   * When a failed message is retried and where it is dead-lettered, such as `{ maxRetries: 5, backoff: exponential("1
   * second") }`. Default: 3 retries without delay, then the queue `<queue>.dlq`.
   */
  // A built policy has this type, too. A union would hide the docstrings in editors.
  readonly retry?: RetryPolicy.Options | undefined
  /**
   * How many messages a batch has, such as `{ maxBatchSize: 50 }`. Default: single messages for `consume`; 10 messages
   * or 5 seconds for `consumeBatch` and pullers.
   */
  readonly batch?: BatchPolicy.Options | undefined
  /** Pauses the consumer while its handlers fail: `true`, or options such as `{ form: "ratio" }`. Default: `false`. */
  readonly consumerBackoff?: ConsumerBackoff.Options | boolean | undefined
}

/** The options of a consumer, with policies as plain objects. */
export interface ConsumeOptions extends Policies, ConsumerOptions.Running {}

/** The options of a puller, with policies as plain objects. */
export interface PullerOptions extends Policies, Puller.Pulling {}

/** The options of `connect`: how the connection sends, logs and is observed, and which adapters it uses. */
export interface ConnectOptions extends Limits.Options, Store.Options {
  /** Adapters to use, such as your own. In a bundle, list all. Default: Requeue imports the package of the URL's scheme. */
  readonly adapters?: ReadonlyArray<Adapter> | undefined
  /**
   * Where the log goes: `"json"` for JSON lines, `false` for no log, or a logger such as pino, winston or `console`.
   * Default: `key=value` pairs on standard error.
   */
  readonly logger?: LoggerLike.LogTarget | undefined
  /** Lowest level that is logged. Default: `"Warn"`, or `"Info"` with a logger object. */
  readonly logLevel?: LogLevel.LogLevel | undefined
  /**
   * How long `connect` retries while the broker is unreachable. 0 means one attempt; on SQS, no attempt. Wrong options,
   * credentials and certificates fail at once. Range: 0 to 24 hours; a number means milliseconds. Default: 30
   * seconds.
   */
  readonly waitForBroker?: Delay.DurationInput | undefined
  /** Traces and metrics, such as `OpenTelemetry.make()` of `@requeue/opentelemetry`. Default: none. */
  readonly telemetry?: Telemetry.Service | undefined
  /**
   * The database for `within`, with an inbox and an outbox, see `relay`. A URL such as `postgres://…` or `sqlite:./queue.db`, an object with a `url` and the adapter's
   * options, or the Layer of an adapter. Default: the transactions of the broker, if it has any.
   */
  readonly store?: Adapters.Address | Layer.Layer<Broker, unknown> | undefined
}

const policyKinds: OptionNames.Of<Policies> = {
  retry: {
    ...OptionKind.object("an object such as { maxRetries: 5 }, or { maxRetries: 0 } for none"),
    inside: inside((retry) => retry)
  },
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

const connectKinds: Readonly<Record<(typeof connectOptions)[number], true | OptionKind.OptionKind>> = {
  ...Limits.kinds,
  adapters: OptionKind.list,
  logger: LoggerLike.kind,
  logLevel: OptionKind.oneOf(["All", "Fatal", "Error", "Warn", "Info", "Debug", "Trace", "None"]),
  waitForBroker: Delay.kind(0, Delay.max),
  ...Store.kinds,
  store: {
    expected: "a URL, an object with a url, or a Layer",
    holds: (value) => (typeof value === "string" && value.includes(":")) || OptionKind.isObject(value)
  },
  telemetry: OptionKind.object(
    "the result of OpenTelemetry.make(), or an object with the functions send and consumer",
    "send",
    "consumer"
  )
} satisfies OptionNames.Of<ConnectOptions>

/** Returns where an option belongs that `connect` does not have: to a worker or the broker. */
const homeOf: OptionNames.Elsewhere = (name) => {
  const worker = Object.hasOwn(consumeKinds, name) ? "consume" : Object.hasOwn(pullerKinds, name) ? "puller" : undefined
  const shown = withoutPassword(name)
  return worker === undefined
    ? `If it is an option of the broker, write connect({ url, ${shown}: … })`
    : `It is an option of requeue.${worker}`
}

const storeOptions = ["inboxRetention", "storeNamespace"] as const

/** @throws RangeError for a wrong option of `connect` */
export const connect = (options: ConnectOptions): void => {
  OptionNames.orThrow(OptionNames.refusal("connect", options, connectKinds, undefined, homeOf))
  if (options.store !== undefined) return
  const useless = storeOptions.find((name) => options[name] !== undefined)
  if (useless === undefined) return
  throw OptionNames.error("connect", undefined, `${useless} has no effect without store`, "Add store, or remove it")
}

/**
 * Returns the options of a consumer with built policies, those of the queue's definition included: start it with the bare queue.
 *
 * @throws RangeError for a wrong option or an invalid handler
 */
export const consume = (call: string, queue: OptionNames.Queue, options: ConsumeOptions, handler: unknown) => {
  OptionNames.orThrow(ConsumerOptions.handlerRefusal(call, queue, options, handler))
  OptionNames.check(call, options, consumeKinds, queue)
  return running(call, queue, ConsumerOptions.over(queue, options, consumeKinds))
}

/**
 * Returns the options of a relay with built policies.
 *
 * @throws RangeError for a wrong option
 */
export const relay = (options: ConsumeOptions, { storeNamespace }: ConnectOptions) => {
  OptionNames.check("requeue.relay", options, consumeKinds)
  return running("requeue.relay", Relay.queueOf(storeNamespace), options)
}

const running = (call: string, queue: OptionNames.Queue, options: ConsumeOptions) => {
  const { rateLimit, shareLimits } = options
  const build = <O, A>(option: string, given: O | undefined, make: (given: O) => A): A | undefined =>
    given === undefined ? undefined : within(call, queue, option, () => make(given))
  return {
    ...withPolicies(call, queue, options),
    rateLimit: build("rateLimit", rateLimit, RateLimit.make),
    shareLimits: build("shareLimits", shareLimits, ShareLimits.make)
  }
}

/**
 * Returns the options of a puller with built policies, those of the queue's definition included: make it with the bare queue.
 *
 * @throws RangeError for a wrong option
 */
export const puller = (queue: OptionNames.Queue, options: PullerOptions) => {
  OptionNames.check("requeue.puller", options, pullerKinds, queue)
  return withPolicies("requeue.puller", queue, ConsumerOptions.over(queue, options, pullerKinds))
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
