/** The server's HTTP interface, which reports more than AMQP does. https://www.rabbitmq.com/docs/http-api-reference */
import { BrokerError, BrokerUrl } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Type } from "../../RabbitMqQueue.ts"
import { Driver } from "../client.ts"
import { textOf } from "../toBrokerError.ts"
import * as PolicyRules from "./policyRules.ts"

/** A queue. Its counts are `undefined` until the server has counted. */
export interface QueueInfo {
  readonly name: string
  /** Its type; `undefined` for a type that the adapter does not know. */
  readonly type?: Type | undefined
  readonly arguments: Readonly<Record<string, unknown>>
  /**
   * The definition of the server's policies for it, such as `delivery-limit`. In the queue's first seconds, it is computed from the
   * policies and the queue's name, and `undefined` if the user may not read policies.
   */
  readonly policy: Readonly<Record<string, unknown>> | undefined
  readonly messages: number | undefined
  readonly unacknowledged: number | undefined
  /** Expired messages that their next queue has not received yet; `undefined` until the server has counted. */
  readonly held?: number | undefined
  /** Messages that the queue itself delays, and when the last of them is due, in milliseconds since the epoch. From 4.3 on. */
  readonly delayed?: number | undefined
  readonly lastDue?: number | undefined
  /** When its first message was published, in milliseconds since the epoch, if the queue reports it. */
  readonly headTimestamp?: number | undefined
}

/** An exchange. */
export interface ExchangeInfo {
  readonly name: string
  readonly type: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** A binding of a queue, or of another exchange, to an exchange. */
export interface BindingInfo {
  /** The exchange. */
  readonly source: string
  readonly queue: string
  /** The routing key. */
  readonly key: string
  readonly arguments: Readonly<Record<string, unknown>>
  /** Whether the destination is a queue and not an exchange. */
  readonly isToQueue: boolean
}

/** The policies of existing queues, and all policies for future ones; the latter are empty if the user may not read them. */
export interface KnownPolicies {
  readonly queues: ReadonlyArray<Pick<QueueInfo, "arguments" | "name" | "policy" | "type">>
  readonly rules: PolicyRules.Rules | undefined
}

/** Requests about the virtual host of the connection. Each fails after `requestTimeout`. */
export interface Management {
  /** The number of unacknowledged deliveries; `undefined` if the server has not counted within seven seconds. */
  readonly unacknowledged: (queue: string) => Effect.Effect<number | undefined, BrokerError.BrokerError>
  /** One queue; `undefined` if it does not exist. */
  readonly queue: (name: string) => Effect.Effect<QueueInfo | undefined, BrokerError.BrokerError>
  readonly queues: Effect.Effect<ReadonlyArray<QueueInfo>, BrokerError.BrokerError>
  /** The types and policies of all queues, and the policies themselves. */
  readonly policies: Effect.Effect<KnownPolicies, BrokerError.BrokerError>
  readonly exchanges: Effect.Effect<ReadonlyArray<ExchangeInfo>, BrokerError.BrokerError>
  /** All bindings. */
  readonly bindings: Effect.Effect<ReadonlyArray<BindingInfo>, BrokerError.BrokerError>
}

/** Milliseconds to wait for the first statistics of a queue, which the server makes every 5 s, and between two requests. */
const statisticsTimeout = 7000
const statisticsInterval = 250

const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

const toObject = (json: unknown): Readonly<Record<string, unknown>> => (Predicate.isObject(json) ? json : {})

const toQueue = (json: unknown): QueueInfo => {
  const told = toObject(json)
  const { arguments: args, effective_policy_definition, messages, messages_unacknowledged, name, type } = told
  const headTimestamp = number(told["head_message_timestamp"])
  return {
    name: String(name),
    type: type === "quorum" || type === "classic" || type === "stream" ? type : undefined,
    arguments: toObject(args),
    policy: Predicate.isObject(effective_policy_definition) ? toObject(effective_policy_definition) : undefined,
    messages: number(messages),
    unacknowledged: number(messages_unacknowledged),
    held: number(told["messages_dlx"]),
    delayed: number(told["messages_delayed"]),
    lastDue: number(told["last_delayed_at"]),
    headTimestamp: headTimestamp === undefined ? undefined : headTimestamp * 1000
  }
}

const toBinding = (json: unknown): BindingInfo => {
  const { arguments: args, destination, destination_type, routing_key, source } = toObject(json)
  return {
    source: String(source),
    queue: String(destination),
    key: String(routing_key),
    arguments: toObject(args),
    isToQueue: destination_type !== "exchange"
  }
}

const toExchange = (json: unknown): ExchangeInfo => {
  const { arguments: args, name, type } = toObject(json)
  return { name: String(name), type: String(type), arguments: toObject(args) }
}

const list = <A>(json: unknown, read: (item: unknown) => A): ReadonlyArray<A> =>
  Array.isArray(json) ? json.map((item) => read(item)) : []

const failed = (
  detail: string,
  remedy = "Enable the management plugin, and give the user the tag monitoring"
): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "management",
    reason: "ConnectionFailed",
    detail,
    remedy
  })

/** The error for a request without a response. The cause has the details: `fetch` itself reports only that it failed. */
const unanswered = (thrown: unknown): BrokerError.BrokerError =>
  thrown instanceof TypeError && thrown.cause !== undefined
    ? failed(
        textOf(thrown.cause),
        "Check host and port in management, and that the server runs with its management plugin"
      )
    : failed(textOf(thrown))

/** Returns `undefined` without the option `management`. User and password are those of its address, else the broker's. */
export const make = (settings: Settings): Effect.Effect<Management | undefined> =>
  Effect.map(Driver, (driver) => of(settings, driver))

const of = ({ address, management, requestTimeout }: Settings, driver: Driver): Management | undefined => {
  if (management === undefined) return undefined
  const given = Result.getOrThrow(BrokerUrl.parse(management)) // RabbitMqOptions has checked it.
  const user = given.username === "" ? address.username : given.username
  const password = given.username === "" ? Redacted.value(address.password) : given.password
  const base = new URL(given.url)
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`
  base.username = ""
  base.password = ""
  const vhost = encodeURIComponent(address.vhost)

  const get = (path: string): Effect.Effect<unknown, BrokerError.BrokerError> =>
    Effect.tryPromise({
      try: async (signal) => {
        const response = await driver.get(new URL(`api/${path}`, base), { headers: { authorization }, signal })
        if (response.status === 404) return undefined
        if (!response.ok) throw new Error(`HTTP status ${response.status}`)
        return await response.json()
      },
      catch: unanswered
    }).pipe(
      Effect.timeoutOrElse({
        duration: Duration.millis(requestTimeout),
        orElse: () => Effect.fail(failed("no response in time"))
      })
    )

  const unacknowledged: Management["unacknowledged"] = (queue) =>
    Effect.gen(function* () {
      for (let waited = 0; waited < statisticsTimeout; waited += statisticsInterval) {
        const json = yield* get(`queues/${vhost}/${encodeURIComponent(queue)}`)
        const count = json === undefined ? 0 : toQueue(json).unacknowledged
        if (count !== undefined) return count
        yield* Effect.sleep(Duration.millis(statisticsInterval))
      }
      return undefined
    })

  // Only a user with the tag policymaker or administrator may read them.
  const rules = Effect.orElseSucceed(
    Effect.zipWith(get(`policies/${vhost}`), get(`operator-policies/${vhost}`), PolicyRules.make, { concurrent: true }),
    () => undefined
  )

  return {
    unacknowledged,
    queue: (name) =>
      Effect.gen(function* () {
        const json = yield* get(`queues/${vhost}/${encodeURIComponent(name)}`)
        if (json === undefined) return undefined
        const told = toQueue(json)
        if (told.policy !== undefined) return told
        const known = yield* rules
        return { ...told, policy: known && PolicyRules.definitionFor(known, name, told.type ?? "unknown") }
      }),
    queues: Effect.map(get(`queues/${vhost}`), (json) => list(json, toQueue)),
    policies: Effect.zipWith(
      get(`queues/${vhost}?columns=name,type,arguments,effective_policy_definition`),
      rules,
      (json, known) => ({ queues: list(json, toQueue), rules: known }),
      { concurrent: true }
    ),
    exchanges: Effect.map(get(`exchanges/${vhost}`), (json) => list(json, toExchange)),
    bindings: Effect.map(get(`bindings/${vhost}`), (json) => list(json, toBinding))
  }
}
