/** Messages of the server, and their deaths. */
import * as Fields from "./Fields.ts"
import * as Version from "./Version.ts"

/** The properties of a message without its headers, as the driver names them. */
export interface Properties {
  readonly contentType?: unknown
  readonly contentEncoding?: unknown
  readonly deliveryMode?: number | undefined
  readonly priority?: number | undefined
  readonly correlationId?: unknown
  readonly replyTo?: unknown
  readonly expiration?: string | undefined
  readonly messageId?: unknown
  readonly timestamp?: number | undefined
  readonly type?: unknown
  readonly userId?: unknown
  readonly appId?: unknown
}

/** A message on its way into an exchange. */
export interface Publication {
  readonly exchange: string
  readonly routingKey: string
  readonly properties: Properties
  readonly table: Buffer | undefined
  readonly content: Buffer
}

/** Why a queue gives a message up. https://www.rabbitmq.com/docs/dlx */
export type Reason = "expired" | "rejected" | "maxlen" | "delivery_limit"

/** A record of `x-death`. */
export interface Death {
  readonly queue: string
  readonly reason: Reason
  readonly count: number
  readonly exchange: string
  readonly routingKeys: ReadonlyArray<string>
  /** Seconds since the epoch. */
  readonly time: number
  readonly expiration: string | undefined
}

/** A published message. A dead letter is another message. */
export interface Message {
  readonly exchange: string
  /** The routing key, then those of the header CC. */
  readonly routingKeys: readonly [string, ...ReadonlyArray<string>]
  readonly content: Buffer
  readonly properties: Properties
  /** The producer's headers, encoded; `undefined` if it sent none. */
  readonly table: Buffer | undefined
  /** The newest first. */
  readonly deaths: ReadonlyArray<Death>
  readonly firstDeath: Death | undefined
  readonly lastDeath: Death | undefined
}

const tableOf = ({ count, exchange, expiration, queue, reason, routingKeys, time }: Death): Fields.Table => ({
  count: { "!": "int64", value: count },
  reason,
  queue,
  time: { "!": "timestamp", value: time },
  exchange,
  "routing-keys": routingKeys,
  ...(expiration === undefined ? {} : { "original-expiration": expiration })
})

const marks = (which: "first" | "last", death: Death | undefined): Fields.Table =>
  death === undefined
    ? {}
    : {
        [`x-${which}-death-reason`]: death.reason,
        [`x-${which}-death-queue`]: death.queue,
        [`x-${which}-death-exchange`]: death.exchange
      }

/** The headers that the server adds to a dead letter: `x-last-death-*` from 4.0 on. */
export const deathHeaders = ({ deaths, firstDeath, lastDeath }: Message, version: string): Fields.Table =>
  deaths.length === 0
    ? {}
    : {
        "x-death": deaths.map(tableOf),
        ...marks("first", firstDeath),
        ...(Version.isAtLeast(version, "3.13.0") ? marks("last", lastDeath) : {})
      }

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

const ofTable = (value: unknown): ReadonlyArray<Death> => {
  if (typeof value !== "object" || value === null) return []
  const { count, exchange, queue, reason, "routing-keys": keys } = value as Fields.Table // Each field is checked.
  return [
    {
      queue: textOf(queue),
      reason: textOf(reason) as Reason, // A producer may send anything; it is only compared.
      count: typeof count === "number" ? count : 1,
      exchange: textOf(exchange),
      routingKeys: Array.isArray(keys) ? keys.map(String) : [],
      time: 0,
      expiration: undefined
    }
  ]
}

/**
 * The deaths in a producer's headers. Before 4.0 the server takes them for its own.
 * https://github.com/rabbitmq/rabbitmq-server/blob/v3.10.8/deps/rabbit/src/rabbit_dead_letter.erl
 */
export const sentDeaths = (headers: Fields.Table, version: string): ReadonlyArray<Death> => {
  const sent = headers["x-death"]
  return Version.isAtLeast(version, "4.0.0") || !Array.isArray(sent) ? [] : sent.flatMap(ofTable)
}

/** Records a death: of the same queue and reason there is one record, which counts and moves to the front. */
export const dies = (message: Message, queue: string, reason: Reason, time: number): Message => {
  const same = (death: Death): boolean => death.queue === queue && death.reason === reason
  const { expiration, ...properties } = message.properties
  const { exchange, routingKeys } = message
  const count = (message.deaths.find(same)?.count ?? 0) + 1
  const death = { queue, reason, count, exchange, routingKeys, time, expiration }
  return {
    ...message,
    properties,
    deaths: [death, ...message.deaths.filter((each) => !same(each))],
    firstDeath: message.firstDeath ?? death,
    lastDeath: death
  }
}

/**
 * Whether the server drops a dead letter on its way into this queue: it died there before, and no consumer has rejected it since.
 * https://www.rabbitmq.com/docs/dlx#cycles
 */
export const isCycle = ({ deaths }: Message, queue: string): boolean => {
  const at = deaths.findIndex((death) => death.queue === queue)
  return at >= 0 && deaths.slice(0, at + 1).every(({ reason }) => reason !== "rejected")
}
