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

/** Where the delays of a queue are kept; `docs/rabbitmq.md` describes each topology. */
export type Topology = Fields["topology"]

/**
 * Names of your own objects in a topology, instead of the names that the adapter makes. `{queue}` stands for the queue,
 * `{ms}` and `{s}` for the delay in milliseconds and in seconds.
 */
export type Names = Fields["names"]

/** A binding of a queue to an exchange: to one of the option `exchanges`, or to an existing one. */
export interface Binding {
  /** The exchange to bind to. */
  readonly exchange: OptionKind.Value<typeof Kinds.binding>["exchange"]
  /** The routing key. Default: an empty key, because exchanges of type `fanout` and `headers` do not read it. */
  readonly routingKey?: OptionKind.Value<typeof Kinds.binding>["routingKey"] | undefined
  /** Arguments, such as `x-match` and the headers to match. Default: none. */
  readonly arguments?: OptionKind.Value<typeof Kinds.binding>["arguments"] | undefined
}

/** A durable exchange of your program. The adapter declares it with the queues that are bound to it. */
export interface ExchangeOptions {
  /** The type: `direct`, `fanout`, `topic`, `headers`, or that of a plugin. */
  readonly type: OptionKind.Value<typeof Kinds.exchange>["type"]
  /** Arguments, such as `alternate-exchange`. Default: none. */
  readonly arguments?: OptionKind.Value<typeof Kinds.exchange>["arguments"] | undefined
  /**
   * Whether the adapter declares the exchange, only checks that it exists, or leaves it alone. Default: the broker's
   * `assert`.
   */
  readonly assert?: OptionKind.Value<typeof Kinds.exchange>["assert"] | undefined
}

/** The options of one queue. */
export interface QueueOptions {
  /** `quorum` or `classic`. Default: the broker's `queueType`, and `classic` for an exclusive queue. */
  readonly type?: OptionKind.Value<typeof Kinds.queue>["type"] | undefined
  /** `x-delivery-limit` of this quorum queue. 10 to 1,000,000; default: the broker's. */
  readonly deliveryLimit?: OptionKind.Value<typeof Kinds.queue>["deliveryLimit"] | undefined
  /**
   * Whether the queue is for this process alone. Such a queue and its messages end with the connection. Default: false.
   */
  readonly exclusive?: OptionKind.Value<typeof Kinds.queue>["exclusive"] | undefined
  /**
   * `x-priority` of the queue's consumers. While consumers of higher priority can take messages, the others get none.
   * Default: 0.
   */
  readonly consumerPriority?: OptionKind.Value<typeof Kinds.queue>["consumerPriority"] | undefined
  /** Further exchanges that the queue is bound to. Retries never go through them. Default: none. */
  readonly bindings?: ReadonlyArray<Binding> | undefined
  /**
   * Whether the adapter declares the queue and its bindings, only checks that they exist, or leaves them alone. Default:
   * the broker's `assert`.
   */
  readonly assert?: OptionKind.Value<typeof Kinds.queue>["assert"] | undefined
  /** Arguments of the queue. They are added to the arguments of the plan, or replace them. Default: none. */
  readonly arguments?: OptionKind.Value<typeof Kinds.queue>["arguments"] | undefined
}

export type { Credentials }

/** Options of TLS, as `node:tls` takes them. */
export type Tls = TlsOptions.Tls

/** The options of a broker. Times are in milliseconds. */
export interface Options {
  /** Login: `plain` with user and password, or `external` with the client certificate in `tls`. Default: `plain`. */
  readonly auth?: Fields["auth"] | undefined
  /** Name of the connections at the server; the adapter adds `:consume` or `:publish`. Default: `requeue`. */
  readonly connectionName?: Fields["connectionName"] | undefined
  /**
   * Time between heartbeats, in whole seconds. Range: 1 second to 1 minute; a number means milliseconds. Default: 10
   * seconds.
   */
  readonly heartbeat?: Delay.DurationInput | undefined
  /** Time limit of an attempt to connect. Range: 100 ms to 2 minutes; a number means milliseconds. Default: 10 seconds. */
  readonly connectTimeout?: Delay.DurationInput | undefined
  /**
   * Longest wait for the answer to a request. Range: 100 ms to 2 minutes; a number means milliseconds. Default: 10
   * seconds.
   */
  readonly requestTimeout?: Delay.DurationInput | undefined
  /**
   * Time limit of the wait for a connection, and then for the confirmation. Range: 100 ms to 2 minutes; a
   * number means milliseconds. Default: 10 seconds.
   */
  readonly publishTimeout?: Delay.DurationInput | undefined
  /**
   * Pause before the second attempt to reconnect. The first has no pause. Range: 1 ms to 1 minute; a number means
   * milliseconds. Default: 100 ms.
   */
  readonly reconnectFirst?: Delay.DurationInput | undefined
  /**
   * Longest pause between attempts to reconnect, at least `reconnectFirst`. Range: 1 ms to 2 minutes; a number means milliseconds.
   * Default: 500 ms.
   */
  readonly reconnectMax?: Delay.DurationInput | undefined
  /** Largest number of unconfirmed messages; further messages wait. Range: 1 to 65,535. Default: 1,000. */
  readonly maxUnconfirmed?: Fields["maxUnconfirmed"] | undefined
  /** Type of the queues that the adapter declares. Default: `quorum`. */
  readonly queueType?: Fields["queueType"] | undefined
  /**
   * `x-delivery-limit`: number of returns after which the server dead-letters a message. Range: 10 to 1,000,000. Default: 1,000.
   */
  readonly deliveryLimit?: Fields["deliveryLimit"] | undefined
  /**
   * The server's `max_message_size`, in bytes. Range: 1 to 536,870,912. Default: 16 MiB from version 4.0 on, 128 MiB
   * before.
   */
  readonly maxBodySize?: Fields["maxBodySize"] | undefined
  /** Where delayed messages wait. Default: `auto`, which is `ladder` for few delays, else `levels`. */
  readonly topology?: Fields["topology"] | undefined
  /**
   * Smallest step of delays with `levels`. Range: 10 ms to 1 second; a number means milliseconds. Default: 50
   * ms.
   */
  readonly resolution?: Delay.DurationInput | undefined
  /**
   * Largest number of queues for the delays of one retry policy. Random delays are rounded up to fit. A policy without random
   * delays that needs more queues does not start. Range: 1 to 128. Default: 10 with jitter, 32 without.
   */
  readonly maxDelayQueues?: Fields["maxDelayQueues"] | undefined
  /**
   * Largest number of queues for delays of handlers and producers, shared by all queues of the server. Below the default, these delays are rounded up; `requeue plan` shows by how much. Range: 4 to 128. Default: enough for every delay up to 24 hours (21
   * with the default `resolution`; with `perDelayQueue` one per delay).
   */
  readonly maxOtherDelayQueues?: Fields["maxOtherDelayQueues"] | undefined
  /** Prefix of the names of delay queues and other shared objects. Range: 1 to 40 letters, digits, `_`, `.` and `-`. Default: `requeue`. */
  readonly prefix?: Fields["prefix"] | undefined
  /** Whether the adapter declares objects, only checks them (`passive`), or leaves them alone (`never`). Default: `declare`. */
  readonly assert?: Fields["assert"] | undefined
  /** URL of the management API, such as `http://localhost:15672`. Default: none. */
  readonly management?: Fields["management"] | undefined
  /**
   * Your names for the objects of a topology: `delayQueue`, `retryQueue`, `retryExchange`, `workExchange`, `waitingQueue`.
   * Default: none.
   */
  readonly names?: Fields["names"] | undefined
  /** Further nodes of the cluster, each as `host` or `host:port`. Default: none. */
  readonly hosts?: Fields["hosts"] | undefined
  /** Options of your exchanges by name, for `bindings` in `queues`. Default: none. */
  readonly exchanges?: { readonly [name: string]: ExchangeOptions } | undefined
  /** Options of single queues by name. Default: none. */
  readonly queues?: { readonly [name: string]: QueueOptions } | undefined
  /** `amqp://user:password@host:port/vhost`, or `amqps:`. Default: `amqp://guest:guest@127.0.0.1:5672/`. */
  readonly url?: string | URL | Redacted.Redacted | undefined
  /** User name; overrides the URL's. Default: the URL's, or `guest`. */
  readonly username?: string | undefined
  /** Password; overrides the URL's. Default: the URL's, or `guest` if the URL has no user. */
  readonly password?: string | Redacted.Redacted | undefined
  /**
   * Function that returns the login, such as an OAuth 2 token. Called for each connection, and again before `expiresAt`. Its
   * time limit is `connectTimeout`. Default: none.
   */
  readonly credentials?: Provider | undefined
  /** Certificates and keys for `amqps:`. Default: Node.js's certificate authorities. */
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
 * Decodes options. An error names the wrong option, and never shows a secret.
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

/**
 * Copies options by name into an object without a prototype. Otherwise a name such as `constructor` would be found although
 * it was not given.
 */
const byName = <A>(given: { readonly [name: string]: A } = {}): { readonly [name: string]: A } =>
  Object.assign(Object.create(null), given)

const managementRefusal = (management: string): ConfigurationError.ConfigurationError | undefined => {
  const parsed = BrokerUrl.parse(management)
  const example = "Write http://user:password@host:15672"
  if (Result.isFailure(parsed)) return refuse("management", parsed.failure.detail, parsed.failure.remedy ?? example)
  const isHttp = /^https?:$/.test(parsed.success.url.protocol)
  return isHttp ? undefined : refuse("management", "the value is not an HTTP URL", example)
}

/** Decodes TLS options. Refuses all of them if the connection has no TLS. */
const decodeTls = (tls: unknown, secure: boolean): Result.Result<Tls, ConfigurationError.ConfigurationError> => {
  const decoded = TlsOptions.decode("rabbitmq", "tls", tls ?? {})
  if (Result.isFailure(decoded) || secure || Object.keys(decoded.success).length === 0) return decoded
  return Result.fail(refuse("tls", "the URL is amqp:, which has no TLS", "Write amqps: in the URL"))
}

/** Returns the error of two logins, or of a login that is not a function. */
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

/** Returns the names of queues and exchanges, and the routing keys, each with the option that has it. */
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

/** Returns the error of options that do not go together. */
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
      return refuse(`${at}.exclusive`, "only a declared queue can be exclusive", `Set its assert: "declare"`)
    if (own.deliveryLimit !== undefined && typeOf(name, settings) === "classic")
      return refuse(`${at}.deliveryLimit`, "a classic queue has no delivery limit", `Set its type: "quorum"`)
  }
  return undefined
}

/** Returns the type with which the adapter declares a queue. */
export const typeOf = (name: string, { queueType, queues }: Pick<Settings, "queueType" | "queues">) =>
  queues[name]?.type ?? (queues[name]?.exclusive === true ? "classic" : queueType)
