/** The server's HTTP interface, for what AMQP does not tell. It is optional, and what it does not know is `undefined`. */
import { BrokerError } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Settings } from "../../RabbitMqOptions.ts"

export interface QueueInfo {
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly messages: number | undefined
  readonly unacknowledged: number | undefined
}

export interface BindingInfo {
  readonly source: string
  readonly queue: string
  readonly key: string
}

export interface Management {
  /** Deliveries that consumers have; `undefined` until the server has counted. */
  readonly unacknowledged: (queue: string) => Effect.Effect<number | undefined, BrokerError.BrokerError>
  readonly queues: Effect.Effect<ReadonlyArray<QueueInfo>, BrokerError.BrokerError>
  /** Of queues to exchanges. */
  readonly bindings: Effect.Effect<ReadonlyArray<BindingInfo>, BrokerError.BrokerError>
}

/** The server counts a new queue's messages within this time, in milliseconds. */
const patience = 7000
const pause = 250

const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

const toInfo = (json: unknown): QueueInfo => {
  const { arguments: args, messages, messages_unacknowledged, name } = json as Record<string, unknown>
  return {
    name: String(name),
    arguments: (args ?? {}) as Readonly<Record<string, unknown>>,
    messages: number(messages),
    unacknowledged: number(messages_unacknowledged)
  }
}

const toBinding = (json: unknown): BindingInfo => {
  const { destination, routing_key, source } = json as Record<string, unknown>
  return { source: String(source), queue: String(destination), key: String(routing_key) }
}

const list = <A>(json: unknown, read: (item: unknown) => A): ReadonlyArray<A> =>
  Array.isArray(json) ? json.map((item) => read(item)) : []

const failed = (detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "management",
    reason: "ConnectionFailed",
    detail,
    remedy: "Enable the management plugin, and give the user the tag monitoring"
  })

export const make = ({ address, management, requestTimeout }: Settings): Management | undefined => {
  if (management === undefined) return undefined
  const base = new URL(Redacted.value(management))
  const user = base.username === "" ? address.username : decodeURIComponent(base.username)
  const password = base.username === "" ? Redacted.value(address.password) : decodeURIComponent(base.password)
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`
  base.username = ""
  base.password = ""
  const vhost = encodeURIComponent(address.vhost)

  const get = (path: string): Effect.Effect<unknown, BrokerError.BrokerError> =>
    Effect.tryPromise({
      try: async (signal) => {
        const response = await fetch(new URL(`api/${path}`, base), { headers: { authorization }, signal })
        if (response.status === 404) return undefined
        if (!response.ok) throw new Error(`HTTP status ${response.status}`)
        return await response.json()
      },
      catch: (cause) => failed(cause instanceof Error ? cause.message : String(cause))
    }).pipe(
      Effect.timeoutOrElse({
        duration: Duration.millis(requestTimeout),
        orElse: () => Effect.fail(failed("no answer in time"))
      })
    )

  const unacknowledged: Management["unacknowledged"] = (queue) =>
    Effect.gen(function* () {
      for (let waited = 0; waited < patience; waited += pause) {
        const json = yield* get(`queues/${vhost}/${encodeURIComponent(queue)}`)
        const count = json === undefined ? 0 : toInfo(json).unacknowledged
        if (count !== undefined) return count
        yield* Effect.sleep(Duration.millis(pause))
      }
      return undefined
    })

  return {
    unacknowledged,
    queues: Effect.map(get(`queues/${vhost}`), (json) => list(json, toInfo)),
    bindings: Effect.map(get(`bindings/${vhost}`), (json) => list(json, toBinding))
  }
}
