/** Headers that are not the producer's: the adapter's own, and the server's. */

import * as Predicate from "effect/Predicate"
import { Metadata } from "@requeue/core/port"
import type { Incoming, Properties, Published } from "./client.ts"
import * as FieldTable from "./fieldTable.ts"
import * as Names from "./names.ts"

/** The header that names one copy of a message. It identifies the copy when it is redelivered after a lost ack. */
export const copyHeader = "requeue-copy"

/** The header with the returns of the copies that this one replaces, because the server cannot count them further. */
export const returnsHeader = "requeue-returns"

/** Headers for operators and foreign consumers; the adapter does not read them. */
export const readable = {
  attempts: "requeue-attempts",
  reason: "requeue-reason",
  origin: "requeue-origin",
  error: "requeue-error"
} as const

/** The header that keeps the server's record of a foreign dead-lettering, as JSON, which the server ignores. */
export const deathHeader = "requeue-death"

/** Headers that record where a message was published, because a copy is published to its queue. */
const publishedHeaders = { exchange: "requeue-exchange", routingKey: "requeue-routing-key" } as const

const own: ReadonlySet<string> = new Set([
  Metadata.header,
  ...Object.values(publishedHeaders),
  copyHeader,
  returnsHeader,
  deathHeader,
  ...Object.values(readable)
])

/**
 * Headers that a copy must not carry. Servers up to 3.13 drop a message whose `x-death` names the queue that it enters,
 * and every server shows consumers the `x-delivery-count` that a producer sent.
 */
const servers = /^(x-death|x-first-death-|x-last-death-|x-delivery-count$|x-acquired-count$|x-opt-|CC$|BCC$)/

/** Whether the adapter writes this header. */
export const isOwn = (name: string): boolean => own.has(name) || name.startsWith("requeue-level-")

/** Whether the server writes this header. */
export const isServers = (name: string): boolean => servers.test(name)

/**
 * The header that makes the server deliver a message to more queues. It must be a list: for a text the server closes
 * the channel, which loses all unconfirmed publications. https://www.rabbitmq.com/docs/sender-selected
 */
export const copiesHeader = (headers: Readonly<Record<string, string>>): "CC" | "BCC" | undefined =>
  headers["CC"] !== undefined ? "CC" : headers["BCC"] !== undefined ? "BCC" : undefined

/** Returns the headers of the message's producer, as received. */
export const foreignEntries = (properties: Properties | undefined): ReadonlyArray<FieldTable.Entry> =>
  properties?.table === undefined
    ? []
    : FieldTable.entries(properties.table).filter(({ name }) => !isOwn(name) && !isServers(name))

const noDeaths: ReadonlyArray<Record<string, unknown>> = []

/** Returns the `x-death` records in these headers. A foreign producer may have written anything there. */
export const deathsOf = (headers: Readonly<Record<string, unknown>>): ReadonlyArray<Record<string, unknown>> => {
  const deaths = headers["x-death"]
  return Array.isArray(deaths) ? deaths.filter(Predicate.isObject) : noDeaths
}

/** The headers of a message that is published to a user's own exchange, or was. */
export const published = (at: Published | undefined): Readonly<Record<string, string>> | undefined =>
  at === undefined
    ? undefined
    : { [publishedHeaders.exchange]: at.exchange, [publishedHeaders.routingKey]: at.routingKey }

const textIn = (headers: Readonly<Record<string, unknown>>, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : undefined
}

/**
 * Returns where a foreign message was published if no header records it yet; `undefined` for other messages. The
 * adapter sends its own messages directly, or their last exchange belongs to a delay.
 */
export const unwritten = ({ fields, properties }: Pick<Incoming, "fields" | "properties">): Published | undefined => {
  const { headers = {} } = properties
  const isWritten = headers[publishedHeaders.exchange] !== undefined || headers[Metadata.header] !== undefined
  return isWritten || fields.exchange === "" ? undefined : { exchange: fields.exchange, routingKey: fields.routingKey }
}

/**
 * Whether the server itself made this message a dead letter: its last exchange is the server's dead-letter exchange.
 */
export const isServersLetter = ({ fields, properties }: Pick<Incoming, "fields" | "properties">): boolean =>
  // A replacement that was made after browsing was published directly, with a header.
  Names.isDead(fields.exchange) || Names.isDead(textIn(properties.headers ?? {}, publishedHeaders.exchange) ?? "")

/** Returns the properties of a message, with the exchange that its producer published to. */
export const propertiesOf = (message: Pick<Incoming, "fields" | "properties">): Properties => {
  const { properties } = message
  const { headers = {} } = properties
  const exchange = textIn(headers, publishedHeaders.exchange)
  const routingKey = textIn(headers, publishedHeaders.routingKey)
  const told = exchange === undefined || routingKey === undefined ? unwritten(message) : { exchange, routingKey }
  const published = told !== undefined && Names.isDead(told.exchange) ? beforeDeath(headers) : told
  return published === undefined ? properties : { ...properties, published }
}

/** Returns where a message was published before the server dead-lettered it, by the newest `x-death` record. */
const beforeDeath = (headers: Readonly<Record<string, unknown>>): Published | undefined => {
  const [{ exchange, "routing-keys": keys } = {}] = deathsOf(headers)
  const routingKey: unknown = Array.isArray(keys) ? keys[0] : undefined
  return typeof exchange === "string" && typeof routingKey === "string" ? { exchange, routingKey } : undefined
}
