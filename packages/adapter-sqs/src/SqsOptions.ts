/**
 * The options of an SQS broker: from code, from a config object, or from a URL.
 *
 * They are validated before any call. Secrets are then `Redacted`: no error, log or printed option shows them.
 */
import { AsyncContext, ConfigurationError, Delay, OptionKind } from "@requeue/core/port"
import { AdapterOptions, OptionTree } from "@requeue/kit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Address from "./internal/address.ts"
import type { SdkOptions } from "./internal/client.ts"
import * as Credentials from "./internal/credentials.ts"
import * as Sdk from "./internal/sdkOptions.ts"

export type { SdkOptions } from "./internal/client.ts"

/**
 * How the adapter treats queues: it creates missing ones, only compares queues with the plan, or only uses them.
 */
export type Queues = "create" | "verify" | "use"

/** Whether a retry blocks the other messages of its message group, or is sent again after them. */
export type FifoRetry = "block" | "resend"

const second = 1000
const day = 86_400_000

/** Makes the kind of a duration that SQS accepts in whole seconds. */
const seconds = (min: number, max: number): OptionKind.OptionKind<number> => {
  const duration = Delay.kind(min, max)
  return {
    ...duration,
    expected: `${duration.expected} in whole seconds`,
    holds: (value) => duration.holds(value) && Number(value) % second === 0
  }
}

const fields = {
  queues: OptionKind.oneOf<Queues>(["create", "verify", "use"]),
  waitTime: seconds(second, 20 * second),
  pollers: OptionKind.whole(1, 50),
  visibilityTimeout: seconds(second, 43_200 * second),
  inFlightLimit: OptionKind.whole(0, 120_000),
  fifoRetry: OptionKind.oneOf<FifoRetry>(["block", "resend"]),
  connectTimeout: Delay.kind(100, 120_000),
  requestTimeout: Delay.kind(100, 120_000),
  retention: seconds(60 * second, 14 * day),
  deadLetterRetention: seconds(60 * second, 14 * day),
  maxReceiveCount: OptionKind.whole(1, 1000),
  encryption: OptionKind.nonEmpty,
  tags: OptionTree.record(OptionKind.text)
}

type Fields = AdapterOptions.Values<typeof fields>

/** All options except the URL. Times are in milliseconds. */
export interface OtherOptions extends SdkOptions {
  /** `create` creates missing queues, `verify` only compares queues with the plan, `use` only uses them. Default: `create`. */
  readonly queues?: Fields["queues"] | undefined
  /**
   * How long a poll waits for messages. Range: 1 to 20 seconds, in whole seconds; a number means milliseconds. Default: 20 seconds.
   */
  readonly waitTime?: Delay.DurationInput | undefined
  /** Largest number of polls at the same time. Range: 1 to 50. Default: 10. */
  readonly pollers?: Fields["pollers"] | undefined
  /**
   * Lease of a delivery: how long messages of a crashed consumer stay invisible. Range: 1 second to 12 hours, in whole
   * seconds; a number means milliseconds. Default: 30 seconds.
   */
  readonly visibilityTimeout?: Delay.DurationInput | undefined
  /**
   * Messages in flight above which retries become copies. 0 makes every
   * retry a copy. Range: 0 to 120,000. Default: 60,000.
   */
  readonly inFlightLimit?: Fields["inFlightLimit"] | undefined
  /**
   * A retry blocks its group (`block`), or goes to the end of its group (`resend`). Default: `block`.
   */
  readonly fifoRetry?: Fields["fifoRetry"] | undefined
  /**
   * Time limit of each of three attempts to connect. Range: 100 ms to 2 minutes; a number means milliseconds. Default: 5 seconds.
   */
  readonly connectTimeout?: Delay.DurationInput | undefined
  /**
   * Time limit of each of three attempts of a request. Range: 100 ms to 2 minutes; a number means milliseconds. Default: 10
   * seconds.
   */
  readonly requestTimeout?: Delay.DurationInput | undefined
  /**
   * How long queues that the adapter creates keep messages. Range: 1 minute to 14 days, in whole seconds; a number means milliseconds.
   * Default: 4 days.
   */
  readonly retention?: Delay.DurationInput | undefined
  /**
   * How long dead-letter queues that the adapter creates keep messages, at least `retention`. Range: 1 minute to 14 days, in whole seconds; a number means
   * milliseconds. Default: 14 days.
   */
  readonly deadLetterRetention?: Delay.DurationInput | undefined
  /**
   * Receive count after which SQS dead-letters a message. Range: 1 to 1,000. Default: more than the policy needs.
   */
  readonly maxReceiveCount?: Fields["maxReceiveCount"] | undefined
  /** Encryption of queues that the adapter creates: `sqs`, `none`, or the id or ARN of a KMS key. Default: `sqs`. */
  readonly encryption?: Fields["encryption"] | undefined
  /** Tags of queues that the adapter creates. Not possible in a URL. Default: none. */
  readonly tags?: Fields["tags"] | undefined
  /** Id of the access key. Default: the URL's, else the SDK's credential chain. */
  readonly accessKeyId?: string | undefined
  /** Secret of the access key. Default: the URL's, else the SDK's credential chain. */
  readonly secretAccessKey?: string | Redacted.Redacted | undefined
  /** Session token of a temporary access key. Default: none. */
  readonly sessionToken?: string | Redacted.Redacted | undefined
}

/** The options of an SQS broker. Times are in milliseconds. */
export interface Options extends OtherOptions {
  /**
   * `sqs://eu-west-1`, `sqs://eu-west-1/123456789012`, or `sqs://key:secret@host:port?region=eu-west-1`, with options
   * in the query.
   */
  readonly url: string | URL | Redacted.Redacted
}

/** Decoded options, with all defaults. */
export interface Settings extends Omit<Fields, "maxReceiveCount"> {
  readonly address: Address.Address
  /** Options that pass the program's own objects to the SDK. */
  readonly sdk: SdkOptions
  /**
   * The number of receives after which SQS dead-letters a message. `undefined` stands for a number above the receives that
   * the policy needs.
   */
  readonly maxReceiveCount: number | undefined
}

const defaults = {
  queues: "create",
  waitTime: 20 * second,
  pollers: 10,
  visibilityTimeout: 30 * second,
  inFlightLimit: 60_000,
  fifoRetry: "block",
  connectTimeout: 5000,
  requestTimeout: 10_000,
  retention: 4 * day,
  deadLetterRetention: 14 * day,
  encryption: "sqs",
  tags: {}
} as const satisfies Partial<Fields>

/** Names of options that are decoded separately. The decoder needs the names to suggest them for misspelled options. */
const others = ["accessKeyId", "secretAccessKey", "sessionToken", "client", "credentials", "endpoint", "requestHandler"]

const decodeFields = AdapterOptions.decoder("sqs", fields, ["url", ...others])

const refuse = (field: string, detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "sqs" })

const isEmpty = (given: unknown): boolean => (Redacted.isRedacted(given) ? Redacted.value(given) : given) === ""

/**
 * Decodes options. Fails with a `ConfigurationError` that names the option, and never shows a secret.
 *
 * @example
 * ```ts
 * import { SqsOptions } from "@requeue/adapter-sqs"
 * import { Result } from "effect"
 *
 * const settings = Result.getOrThrow(SqsOptions.decode({ url: "sqs://eu-west-1?waitTime=5000" }))
 * settings.waitTime // => 5000
 * settings.visibilityTimeout // => 30_000
 * ```
 */
export const decode = (options: Options): Result.Result<Settings, ConfigurationError.ConfigurationError> => {
  const { accessKeyId, client, credentials, endpoint, requestHandler, secretAccessKey, sessionToken, url, ...rest } =
    AsyncContext.bound(options)
  const notText = AdapterOptions.secretProblem("sqs", { accessKeyId, secretAccessKey, sessionToken })
  if (notText !== undefined) return Result.fail(notText)
  if (isEmpty(sessionToken))
    return Result.fail(refuse("sessionToken", "the value is empty", "Write a token, or leave sessionToken out"))
  const parsed = Address.parse(url, [...others, ...Object.keys(fields)], accessKeyId, secretAccessKey)
  if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
  const address = Sdk.sessionToken(sessionToken, parsed.success.address)
  if (Result.isFailure(address)) return Result.fail(address.failure)
  const broken = Object.entries(address.success.credentials ?? {}).find(([, value]) =>
    Credentials.endsLine(AdapterOptions.textOf(value))
  )
  if (broken !== undefined) {
    const [name] = broken
    const field = Reflect.get(options, name) === undefined ? "url" : name
    const detail = `${field === name ? "the value is" : `its ${name} is`} text ${Credentials.lineEnd}`
    return Result.fail(
      refuse(field, detail, "Remove the line end, for example by trim() if the value is read from a file")
    )
  }
  const { parameters } = parsed.success
  const misplaced = others.find((name) => name in parameters)
  // An error of the decoder would show the value, which may be a secret.
  if (misplaced !== undefined) {
    const remedy = "Write an access key as sqs://<access key>:<secret>@<host>, and all else in code or a config file"
    return Result.fail(refuse(misplaced, "this option cannot be in the URL", remedy))
  }
  const connectTimeout = rest.connectTimeout ?? parameters["connectTimeout"]
  const requestTimeout = rest.requestTimeout ?? parameters["requestTimeout"]
  const timeouts = { connectTimeout, requestTimeout }
  const sdk = Sdk.check({ client, credentials, requestHandler, endpoint }, address.success, timeouts)
  if (Result.isFailure(sdk)) return Result.fail(sdk.failure)
  const decoded = decodeFields(parameters, rest)
  if (Result.isFailure(decoded)) return Result.fail(decoded.failure)
  const { maxReceiveCount, ...values } = decoded.success
  const settings: Settings = {
    ...defaults,
    requestTimeout: Sdk.requestTimeout(sdk.success) ?? defaults.requestTimeout,
    ...values,
    address: address.success,
    sdk: sdk.success,
    maxReceiveCount
  }
  if (settings.deadLetterRetention < settings.retention) {
    const detail = `${Delay.format(settings.deadLetterRetention)} is less than retention: a dead letter keeps its age`
    return Result.fail(refuse("deadLetterRetention", detail, "Set deadLetterRetention to retention or more"))
  }
  return Result.succeed(settings)
}
