/**
 * The options of a RabbitMQ broker: from code, from a config object, or from a URL.
 *
 * They are decoded and validated before anything is connected. Credentials are `Redacted` from here on: no error, log
 * or printed option shows them.
 */
import { ConfigurationError, Delay } from "@requeue/core/adapter-kit"
import { AdapterOptions } from "@requeue/core/schema"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Address from "./internal/address.ts"

/** Where the delays of a queue live; see the package's README for a drawing of each. */
export const Topology = Schema.Literals([
  "auto",
  "ladder",
  "levels",
  "perMessageTtl",
  "perMessageTtlShared",
  "perDelayQueue",
  "waitLoop",
  "native"
])
export type Topology = typeof Topology.Type

/** Names of foreign topologies: `{queue}`, `{ms}` and `{s}` stand for the queue and the delay. */
export const Names = Schema.Struct({
  delayQueue: Schema.optionalKey(Schema.NonEmptyString),
  retryQueue: Schema.optionalKey(Schema.NonEmptyString),
  retryExchange: Schema.optionalKey(Schema.NonEmptyString),
  workExchange: Schema.optionalKey(Schema.NonEmptyString),
  waitingQueue: Schema.optionalKey(Schema.NonEmptyString)
})
export type Names = typeof Names.Type

const millis = (min: number, max: number) => Schema.Int.check(Schema.isBetween({ minimum: min, maximum: max }))
const count = (min: number, max: number) => Schema.Int.check(Schema.isBetween({ minimum: min, maximum: max }))

/** A binding of a queue to an exchange that exists already. */
const Binding = Schema.Struct({ exchange: Schema.NonEmptyString, routingKey: Schema.String })

const Assert = Schema.Literals(["declare", "passive", "never"])

/** What one queue has of its own. */
const QueueOptions = Schema.Struct({
  /** Further exchanges that feed the queue. Retries never go through them. */
  bindings: Schema.optionalKey(Schema.Array(Binding)),
  assert: Schema.optionalKey(Assert),
  /** Arguments added to, or replacing, those of the plan. */
  arguments: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})

const fields = {
  auth: Schema.Literals(["plain", "external"]),
  connectionName: Schema.NonEmptyString,
  heartbeat: millis(1000, 60_000),
  connectTimeout: millis(100, 120_000),
  requestTimeout: millis(100, 120_000),
  publishTimeout: millis(100, 120_000),
  reconnectFirst: millis(1, 60_000),
  reconnectMax: millis(1, 120_000),
  maxUnconfirmed: count(1, 65_535),
  queueType: Schema.Literals(["quorum", "classic"]),
  deliveryLimit: count(10, 1_000_000),
  maxBodySize: count(1, 512 * 1024 * 1024),
  topology: Topology,
  resolution: millis(10, 1000),
  prefix: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_.-]{1,40}$/)),
  assert: Assert,
  management: Schema.NonEmptyString,
  names: Names,
  hosts: Schema.Array(Schema.String.check(Schema.isPattern(/^(\[[0-9a-fA-F:]+\]|[^\s:/@]+)(:\d{1,5})?$/))),
  queues: Schema.Record(Schema.String, QueueOptions)
}

type Fields = { readonly [K in keyof typeof fields]: (typeof fields)[K]["Type"] }

/** TLS material, as `node:tls` takes it. */
export interface Tls {
  readonly ca?: string | Buffer | Array<string | Buffer> | undefined
  readonly cert?: string | Buffer | undefined
  readonly key?: string | Buffer | undefined
  readonly pfx?: Buffer | undefined
  readonly passphrase?: Redacted.Redacted | undefined
  readonly servername?: string | undefined
  readonly rejectUnauthorized?: boolean | undefined
}

/** Times are in milliseconds; the README's table says what each option means and its default. */
export interface Options extends Partial<Fields> {
  /** `amqp://user:password@host:port/vhost`, or `amqps:`. Default `amqp://guest:guest@127.0.0.1:5672/`. */
  readonly url?: string | URL | Redacted.Redacted | undefined
  readonly username?: string | undefined
  readonly password?: string | Redacted.Redacted | undefined
  readonly tls?: Tls | undefined
}

/** Decoded options, every default filled in. */
export interface Settings extends Omit<Fields, "management" | "maxBodySize"> {
  readonly address: Address.Address
  readonly tls: Tls
  readonly management: Redacted.Redacted | undefined
  readonly maxBodySize: number | undefined
}

const defaults = {
  auth: "plain",
  connectionName: "requeue",
  heartbeat: 10_000,
  connectTimeout: 10_000,
  requestTimeout: 10_000,
  publishTimeout: 10_000,
  reconnectFirst: 100,
  reconnectMax: 500,
  maxUnconfirmed: 1000,
  queueType: "quorum",
  deliveryLimit: 1000,
  topology: "auto",
  resolution: 50,
  prefix: "requeue",
  assert: "declare",
  names: {},
  hosts: [],
  queues: {}
} as const satisfies Partial<Fields>

const decodeFields = AdapterOptions.decoder("rabbitmq", fields)

const refuse = (field: string, detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "rabbitmq" })

/** Decodes options; never shows a secret in its errors. */
export const decode = (options: Options = {}): Result.Result<Settings, ConfigurationError.ConfigurationError> => {
  const { password, tls = {}, url, username, ...rest } = options
  const address = Address.parse(url, username, password)
  if (Result.isFailure(address)) return Result.fail(address.failure)
  const decoded = decodeFields(address.success.parameters, rest)
  if (Result.isFailure(decoded)) return Result.fail(decoded.failure)
  const { management, maxBodySize, ...values } = decoded.success
  const settings: Settings = {
    ...defaults,
    ...values,
    address: address.success.address,
    tls,
    management: management === undefined ? undefined : Redacted.make(management),
    maxBodySize
  }
  const conflict = contradiction(settings)
  return conflict === undefined ? Result.succeed(settings) : Result.fail(conflict)
}

const contradiction = (settings: Settings): ConfigurationError.ConfigurationError | undefined => {
  if (settings.queueType === "classic" && settings.topology === "native") {
    return refuse("topology", "native delays need quorum queues", `Set queueType: "quorum", or another topology`)
  }
  if (settings.reconnectMax < settings.reconnectFirst) {
    const detail = `${Delay.format(settings.reconnectMax)} is less than reconnectFirst`
    return refuse("reconnectMax", detail, "Set it to reconnectFirst or more")
  }
  return undefined
}
