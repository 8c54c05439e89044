/**
 * The options of an SQS broker: from code, from a config object, or from a URL.
 *
 * They are decoded and validated before anything is called. Secrets are `Redacted` from here on: no error, log or
 * printed option shows them.
 */
import { ConfigurationError, Delay } from "@requeue/core/adapter-kit"
import { AdapterOptions } from "@requeue/core/schema"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Address from "./internal/address.ts"

/** What is done about queues: create the missing ones, compare them with the plan, or only use them. */
export const Queues = Schema.Literals(["create", "verify", "use"])
export type Queues = typeof Queues.Type

/** What a retry does to the other messages of its group: they wait for it, or it goes behind them. */
export const FifoRetry = Schema.Literals(["block", "resend"])
export type FifoRetry = typeof FifoRetry.Type

const second = 1000
const day = 86_400_000

const count = (min: number, max: number) => Schema.Int.check(Schema.isBetween({ minimum: min, maximum: max }))
/** Milliseconds. */
const millis = count
/** Milliseconds that SQS takes as whole seconds. */
const seconds = (min: number, max: number) => millis(min, max).check(Schema.isMultipleOf(second))

const fields = {
  queues: Queues,
  waitTime: seconds(second, 20 * second),
  pollers: count(1, 50),
  visibilityTimeout: seconds(second, 43_200 * second),
  inFlightLimit: count(0, 120_000),
  fifoRetry: FifoRetry,
  connectTimeout: millis(100, 120_000),
  requestTimeout: millis(100, 120_000),
  retention: seconds(60 * second, 14 * day),
  deadLetterRetention: seconds(60 * second, 14 * day),
  maxReceiveCount: count(1, 1000),
  encryption: Schema.NonEmptyString,
  tags: Schema.Record(Schema.NonEmptyString, Schema.String)
}

type Fields = { readonly [K in keyof typeof fields]: (typeof fields)[K]["Type"] }

/** Times are in milliseconds; the README's table says what each option means and its default. */
export interface Options extends Partial<Fields> {
  /** `sqs://eu-west-1`, `sqs://eu-west-1/123456789012`, or `sqs://key:secret@host:port?region=eu-west-1`. */
  readonly url: string | URL | Redacted.Redacted
  readonly accessKeyId?: string | undefined
  readonly secretAccessKey?: string | Redacted.Redacted | undefined
}

/** Decoded options, every default filled in. */
export interface Settings extends Omit<Fields, "maxReceiveCount"> {
  readonly address: Address.Address
  /** `undefined`: with slack above what the policy needs. */
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

const decodeFields = AdapterOptions.decoder("sqs", fields)

const refuse = (field: string, detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "sqs" })

/** From a config file, a key of digits may come as a number. */
const isText = (given: unknown): boolean =>
  given === undefined || typeof given === "string" || Redacted.isRedacted(given)

/** Decodes options; never shows a secret in its errors. */
export const decode = (options: Options): Result.Result<Settings, ConfigurationError.ConfigurationError> => {
  const { accessKeyId, secretAccessKey, url, ...rest } = options
  const wrong = Object.entries({ accessKeyId, secretAccessKey }).find(([, given]) => !isText(given))
  if (wrong !== undefined) return Result.fail(refuse(wrong[0], "must be text", "Write it in quotes"))
  const address = Address.parse(url, accessKeyId, secretAccessKey)
  if (Result.isFailure(address)) return Result.fail(address.failure)
  const decoded = decodeFields(address.success.parameters, rest)
  if (Result.isFailure(decoded)) return Result.fail(decoded.failure)
  const { maxReceiveCount, ...values } = decoded.success
  const settings: Settings = { ...defaults, ...values, address: address.success.address, maxReceiveCount }
  if (settings.deadLetterRetention < settings.retention) {
    const detail = `${Delay.format(settings.deadLetterRetention)} is less than retention: a dead letter keeps its age`
    return Result.fail(refuse("deadLetterRetention", detail, "Set it to retention or more"))
  }
  return Result.succeed(settings)
}
