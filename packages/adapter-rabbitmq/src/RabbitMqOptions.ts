/**
 * The options of a RabbitMQ broker: from code, from a config object, or from a URL.
 *
 * They are decoded and validated before anything is connected. Credentials are `Redacted` from here on: no error, log
 * or printed option shows them.
 */
import { AsyncContext, BrokerUrl, ConfigurationError, Delay, type OptionKind } from "@requeue/core/port"
import { AdapterOptions, TlsOptions } from "@requeue/kit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Address from "./internal/address.ts"
import { problemOf } from "./internal/nameRules.ts"
import * as Kinds from "./internal/fields.ts"
import type { Credentials, Provider } from "./internal/connect/credentials.ts"

type Fields = AdapterOptions.Values<typeof Kinds.fields>

/** Where the delays of a queue are kept; the package's README has a drawing of each. */
export type Topology = Fields["topology"]

/**
 * Names in topologies that exist already, which replace the topology's own. `{queue}` stands for the queue, `{ms}` and
 * `{s}` for the delay in milliseconds and in seconds.
 */
export type Names = Fields["names"]

/** A binding of a queue to an exchange: one of `exchanges`, or one that exists already. */
export interface Binding {
  /** The exchange to bind to. */
  readonly exchange: OptionKind.Value<typeof Kinds.binding>["exchange"]
  /** The routing key. Default: the empty one, which exchanges of type `fanout` and `headers` do not read. */
  readonly routingKey?: OptionKind.Value<typeof Kinds.binding>["routingKey"] | undefined
  /** Arguments, such as `x-match` and the headers to match. Default: none. */
  readonly arguments?: OptionKind.Value<typeof Kinds.binding>["arguments"] | undefined
}

/** A durable exchange of the user's own. It is declared with the queues that are bound to it. */
export interface ExchangeOptions {
  /** The type: `direct`, `fanout`, `topic`, `headers`, or that of a plugin. */
  readonly type: OptionKind.Value<typeof Kinds.exchange>["type"]
  /** Arguments, such as `alternate-exchange`. Default: none. */
  readonly arguments?: OptionKind.Value<typeof Kinds.exchange>["arguments"] | undefined
  /** Whether it is declared, looked for, or not touched. Default: the broker's `assert`. */
  readonly assert?: OptionKind.Value<typeof Kinds.exchange>["assert"] | undefined
}

/** The options of one queue. */
export interface QueueOptions {
  /** `quorum` or `classic`. Default: the broker's `queueType`, and `classic` for an exclusive queue. */
  readonly type?: OptionKind.Value<typeof Kinds.queue>["type"] | undefined
  /** `x-delivery-limit` of this quorum queue. 10 to 1,000,000; default: the broker's. */
  readonly deliveryLimit?: OptionKind.Value<typeof Kinds.queue>["deliveryLimit"] | undefined
  /** Whether it is for this process alone, and ends with its connection, messages included. Default: false. */
  readonly exclusive?: OptionKind.Value<typeof Kinds.queue>["exclusive"] | undefined
  /** `x-priority` of its consumers: while those of more can take messages, the others get none. Default: 0. */
  readonly consumerPriority?: OptionKind.Value<typeof Kinds.queue>["consumerPriority"] | undefined
  /** Further exchanges that the queue is bound to. Retries never go through them. Default: none. */
  readonly bindings?: ReadonlyArray<Binding> | undefined
  /** Whether the queue and its bindings are declared, looked for, or not touched. Default: the broker's `assert`. */
  readonly assert?: OptionKind.Value<typeof Kinds.queue>["assert"] | undefined
  /** Arguments that are added to those of the plan, or replace them. Default: none. */
  readonly arguments?: OptionKind.Value<typeof Kinds.queue>["arguments"] | undefined
}

export type { Credentials }

/** Options of TLS, as `node:tls` takes them. */
export type Tls = TlsOptions.Tls

/** The options of a broker. Times are in milliseconds. */
export interface Options {
  /** `plain` logs in with user and password, `external` with the client certificate in `tls`. Default: `plain`. */
  readonly auth?: Fields["auth"] | undefined
  /** The name that the server shows, followed by `:consume` or `:publish`. Default: `requeue`. */
  readonly connectionName?: Fields["connectionName"] | undefined
  /** Milliseconds between heartbeats, rounded to seconds. 1000 to 60,000; default: 10,000. */
  readonly heartbeat?: Delay.DurationInput | undefined
  /** Milliseconds that one attempt to connect may take. 100 to 120,000; default: 10,000. */
  readonly connectTimeout?: Delay.DurationInput | undefined
  /** Milliseconds that one request may take. 100 to 120,000; default: 10,000. */
  readonly requestTimeout?: Delay.DurationInput | undefined
  /** Milliseconds until a publish is confirmed, and as many for a connection first. 100 to 120,000; default: 10,000. */
  readonly publishTimeout?: Delay.DurationInput | undefined
  /** Milliseconds before the second attempt to connect again; the first is at once. 1 to 60,000; default: 100. */
  readonly reconnectFirst?: Delay.DurationInput | undefined
  /** The longest pause between attempts, in milliseconds. `reconnectFirst` to 120,000; default: 500. */
  readonly reconnectMax?: Delay.DurationInput | undefined
  /** Messages that may be unconfirmed; further ones wait. 1 to 65,535; default: 1000. */
  readonly maxUnconfirmed?: Fields["maxUnconfirmed"] | undefined
  /** The type of all queues that are declared. Default: `quorum`. */
  readonly queueType?: Fields["queueType"] | undefined
  /** `x-delivery-limit`: returns after which the server itself gives a message up. 10 to 1,000,000; default: 1000. */
  readonly deliveryLimit?: Fields["deliveryLimit"] | undefined
  /** The server's `max_message_size` in bytes. 1 to 512 MiB; default: by version, 16 MiB from 4.0 on, 128 MiB before. */
  readonly maxBodySize?: Fields["maxBodySize"] | undefined
  /** Where delays are kept. Default: `auto`, which is a ladder for few delays, and else levels. */
  readonly topology?: Fields["topology"] | undefined
  /** The smallest step of the levels, in milliseconds. 10 to 1000; default: 50. */
  readonly resolution?: Delay.DurationInput | undefined
  /**
   * The most queues for the delays of one retry policy. 1 to 128; default: 10 for a policy with jitter, 32 for another one.
   * Random delays are rounded up to fit. A consumer whose other delays need more queues does not start. Delays outside the policy
   * count for `maxOtherDelayQueues`.
   */
  readonly maxDelayQueues?: Fields["maxDelayQueues"] | undefined
  /**
   * The most queues for delays that handlers and producers ask for outside the retry policy. All queues of the server share them.
   * 4 to 128; default: as many as every delay of up to 24 hours needs, which is 21 for the default `resolution`; one for each
   * delay with topology `perDelayQueue`. With fewer, these delays are rounded up; `requeue plan` shows by how much.
   */
  readonly maxOtherDelayQueues?: Fields["maxOtherDelayQueues"] | undefined
  /** The start of the names of everything that queues share. Default: `requeue`. */
  readonly prefix?: Fields["prefix"] | undefined
  /** Whether objects are declared, only looked for (`passive`), or not touched (`never`). Default: `declare`. */
  readonly assert?: Fields["assert"] | undefined
  /** The address of the HTTP interface, such as `http://localhost:15672`. Default: none, and it is not asked. */
  readonly management?: Fields["management"] | undefined
  /** Names that replace the topology's own. Default: none. */
  readonly names?: Fields["names"] | undefined
  /** Further nodes of the cluster, `host` or `host:port`, tried in turn. Default: none. */
  readonly hosts?: Fields["hosts"] | undefined
  /** Exchanges of the user's own, by name, for `bindings` in `queues`. Default: none. */
  readonly exchanges?: { readonly [name: string]: ExchangeOptions } | undefined
  /** Options of single queues, by name. Default: none. */
  readonly queues?: { readonly [name: string]: QueueOptions } | undefined
  /** `amqp://user:password@host:port/vhost`, or `amqps:`. Default: `amqp://guest:guest@127.0.0.1:5672/`. */
  readonly url?: string | URL | Redacted.Redacted | undefined
  /** The user to log in as, which beats the URL's. Default: the URL's, or `guest`. */
  readonly username?: string | undefined
  /** The user's password, which beats the URL's. Default: the URL's, or `guest` where the URL has no user either. */
  readonly password?: string | Redacted.Redacted | undefined
  /**
   * Answers what to log in with, which beats the URL's: for passwords that change, and for tokens of OAuth 2. It is asked
   * for every connection, and again before `expiresAt`; `connectTimeout` is its time. Default: none.
   */
  readonly credentials?: Provider | undefined
  /** Certificates and keys for `amqps:`. Default: the certificate authorities of Node.js. */
  readonly tls?: Tls | undefined
}

/** Decoded options, with every default filled in. */
export interface Settings extends Omit<
  Fields,
  "management" | "maxBodySize" | "maxDelayQueues" | "maxOtherDelayQueues"
> {
  readonly address: Address.Address
  readonly credentials: Provider | undefined
  readonly tls: Tls
  readonly management: Redacted.Redacted | undefined
  readonly maxBodySize: number | undefined
  readonly maxDelayQueues: number | undefined
  readonly maxOtherDelayQueues: number | undefined
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
  hosts: []
} as const satisfies Partial<Fields>

const decodeFields = AdapterOptions.decoder("rabbitmq", Kinds.fields, [
  "url",
  "username",
  "password",
  "credentials",
  "tls"
])

const refuse = (field: string, detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "rabbitmq" })

/**
 * Decodes options. The error names the option, and never shows a secret.
 *
 * @example
 * ```ts
 * import { RabbitMqOptions } from "@requeue/adapter-rabbitmq"
 * import * as Result from "effect/Result"
 *
 * const settings = Result.getOrThrow(RabbitMqOptions.decode({ url: "amqp://localhost?queueType=classic" }))
 * settings.queueType // => "classic"
 * ```
 */
export const decode = (options: Options = {}): Result.Result<Settings, ConfigurationError.ConfigurationError> => {
  const { credentials, password, tls: given, url, username, ...rest } = AsyncContext.bound(options)
  const address = Address.parse(url, username, password)
  if (Result.isFailure(address)) return Result.fail(address.failure)
  const decoded = decodeFields(address.success.parameters, rest)
  if (Result.isFailure(decoded)) return Result.fail(decoded.failure)
  const tls = decodeTls(given, address.success.address.secure)
  if (Result.isFailure(tls)) return Result.fail(tls.failure)
  const account = accountRefusal(options, decoded.success.auth)
  if (account !== undefined) return Result.fail(account)
  const { management, maxBodySize, maxDelayQueues, maxOtherDelayQueues, ...values } = decoded.success
  const unusable = management === undefined ? undefined : managementRefusal(management)
  if (unusable !== undefined) return Result.fail(unusable)
  const settings: Settings = {
    ...defaults,
    ...values,
    exchanges: byName(values.exchanges),
    queues: byName(values.queues),
    address: address.success.address,
    credentials,
    tls: tls.success,
    management: management === undefined ? undefined : Redacted.make(management),
    maxBodySize,
    maxDelayQueues,
    maxOtherDelayQueues
  }
  const conflict = contradiction(settings)
  return conflict === undefined ? Result.succeed(settings) : Result.fail(conflict)
}

/** The same by name, where no name of `Object.prototype`, such as `constructor`, is found that was not given. */
const byName = <A>(given: { readonly [name: string]: A } = {}): { readonly [name: string]: A } =>
  Object.assign(Object.create(null), given)

const managementRefusal = (management: string): ConfigurationError.ConfigurationError | undefined => {
  const parsed = BrokerUrl.parse(management)
  const example = "Write http://user:password@host:15672"
  if (Result.isFailure(parsed)) return refuse("management", parsed.failure.detail, parsed.failure.remedy ?? example)
  const isHttp = /^https?:$/.test(parsed.success.url.protocol)
  return isHttp ? undefined : refuse("management", "it is not an HTTP URL", example)
}

/** Decodes TLS options. Any of them is refused where there is no TLS. */
const decodeTls = (tls: unknown, secure: boolean): Result.Result<Tls, ConfigurationError.ConfigurationError> => {
  const decoded = TlsOptions.decode("rabbitmq", "tls", tls ?? {})
  if (Result.isFailure(decoded) || secure || Object.keys(decoded.success).length === 0) return decoded
  return Result.fail(refuse("tls", "the URL is amqp:, which has no TLS", "Write amqps: in the URL"))
}

/** The error of two accounts, or of one that is no function. */
const accountRefusal = (
  { credentials, password, username }: Options,
  auth: Settings["auth"] | undefined
): ConfigurationError.ConfigurationError | undefined => {
  if (credentials === undefined) return undefined
  const remedy = "Write credentials: () => ({ username, password }); it may be async"
  if (typeof credentials !== "function") return refuse("credentials", "must be a function", remedy)
  const other = password !== undefined ? "password" : username !== undefined ? "username" : undefined
  if (other !== undefined) return refuse("credentials", `${other} is given as well`, `Leave ${other} out`)
  if (auth === "external")
    return refuse("credentials", `auth: "external" logs in by certificate`, "Leave one of them out")
  return undefined
}

/** The names of queues and exchanges, and the routing keys, each with its option. */
const namesIn = ({ exchanges, names, queues }: Settings): ReadonlyArray<readonly [field: string, name: string]> => [
  ...Object.entries(names).map(([key, name]) => [`names.${key}`, name ?? ""] as const),
  ...Object.keys(exchanges).map((name) => ["exchanges", name] as const),
  ...Object.entries(queues).flatMap(([name, { bindings = [] }]) => [
    ["queues", name] as const,
    ...bindings.flatMap(({ exchange, routingKey = "" }, at) => [
      [`queues.${name}.bindings[${at}].exchange`, exchange] as const,
      [`queues.${name}.bindings[${at}].routingKey`, routingKey] as const
    ])
  ])
]

/** The error of options that do not go together. */
const contradiction = (settings: Settings): ConfigurationError.ConfigurationError | undefined => {
  if (settings.queueType === "classic" && settings.topology === "native") {
    return refuse("topology", "native delays need quorum queues", `Set queueType: "quorum", or another topology`)
  }
  if (settings.reconnectMax < settings.reconnectFirst) {
    const detail = `${Delay.format(settings.reconnectMax)} is less than reconnectFirst`
    return refuse("reconnectMax", detail, "Set it to reconnectFirst or more")
  }
  for (const [field, name] of namesIn(settings)) {
    const problem = problemOf(name)
    if (problem !== undefined) return refuse(field, problem.detail, problem.remedy)
  }
  for (const [name, own] of Object.entries(settings.queues)) {
    const at = `queues.${name}`
    if (own.exclusive === true && own.type === "quorum")
      return refuse(`${at}.exclusive`, "a quorum queue cannot be exclusive", "Leave out its type, or exclusive")
    if (own.exclusive === true && (own.assert ?? settings.assert) !== "declare")
      return refuse(`${at}.exclusive`, "only one that is declared can be exclusive", `Set its assert: "declare"`)
    if (own.deliveryLimit !== undefined && typeOf(name, settings) === "classic")
      return refuse(`${at}.deliveryLimit`, "a classic queue has no delivery limit", `Set its type: "quorum"`)
  }
  return undefined
}

/** The type that a queue is declared with. */
export const typeOf = (name: string, { queueType, queues }: Pick<Settings, "queueType" | "queues">) =>
  queues[name]?.type ?? (queues[name]?.exclusive === true ? "classic" : queueType)
