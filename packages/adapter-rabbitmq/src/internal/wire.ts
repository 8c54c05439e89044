/** Headers that are not the producer's: the adapter's own, and those that the server writes. */

import * as Predicate from "effect/Predicate"
import { Metadata } from "@requeue/core/port"
import type { Incoming, Properties, Published } from "./client.ts"
import * as FieldTable from "./fieldTable.ts"
import * as Names from "./names.ts"

/** The header that names one copy of a message, so that its redelivery after a lost ack is recognised. */
export const copyHeader = "requeue-copy"

/** The header that keeps the returns of the copies that this one replaces, because the server cannot count them further. */
export const returnsHeader = "requeue-returns"

/** Headers for people and foreign consumers; nothing is read back from them. */
export const readable = {
  attempts: "requeue-attempts",
  reason: "requeue-reason",
  origin: "requeue-origin",
  error: "requeue-error"
} as const

/** The header that keeps the server's record of a foreign dead-lettering, as JSON that the server does not read. */
export const deathHeader = "requeue-death"

/** Headers that keep where a message was published: a copy is published to its queue. */
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
 * Headers that a copy must not carry: servers up to 3.13 drop a message whose `x-death` names the queue that it is to
 * enter, and every server shows a consumer the `x-delivery-count` that a producer sent.
 */
const servers = /^(x-death|x-first-death-|x-last-death-|x-delivery-count$|x-acquired-count$|x-opt-|CC$|BCC$)/

/** Whether the adapter writes this header. */
export const isOwn = (name: string): boolean => own.has(name) || name.startsWith("requeue-level-")

/** Whether the server writes this header. */
export const isServers = (name: string): boolean => servers.test(name)

/**
 * The header by which the server would send a message elsewhere as well. Text is no such list: the server closes the channel, with
 * all that is unconfirmed on it. https://www.rabbitmq.com/docs/sender-selected
 */
export const copiesHeader = (headers: Readonly<Record<string, string>>): "CC" | "BCC" | undefined =>
  headers["CC"] !== undefined ? "CC" : headers["BCC"] !== undefined ? "BCC" : undefined

/** The headers of the message's producer, as they came. */
export const foreignEntries = (properties: Properties | undefined): ReadonlyArray<FieldTable.Entry> =>
  properties?.table === undefined
    ? []
    : FieldTable.entries(properties.table).filter(({ name }) => !isOwn(name) && !isServers(name))

const noDeaths: ReadonlyArray<Record<string, unknown>> = []

/** The records of deaths in these headers. A foreign producer may have written anything there. */
export const deathsOf = (headers: Readonly<Record<string, unknown>>): ReadonlyArray<Record<string, unknown>> => {
  const deaths = headers["x-death"]
  return Array.isArray(deaths) ? deaths.filter(Predicate.isObject) : noDeaths
}

/** The headers of a message that came, or goes, through a user's own exchange. */
export const published = (at: Published | undefined): Readonly<Record<string, string>> | undefined =>
  at === undefined
    ? undefined
    : { [publishedHeaders.exchange]: at.exchange, [publishedHeaders.routingKey]: at.routingKey }

const textIn = (headers: Readonly<Record<string, unknown>>, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : undefined
}

/**
 * Where a foreign message was published, which no header tells yet; `undefined` for all others. Ours came straight, or their
 * last exchange is one of a delay.
 */
export const unwritten = ({ fields, properties }: Pick<Incoming, "fields" | "properties">): Published | undefined => {
  const { headers = {} } = properties
  const isWritten = headers[publishedHeaders.exchange] !== undefined || headers[Metadata.header] !== undefined
  return isWritten || fields.exchange === "" ? undefined : { exchange: fields.exchange, routingKey: fields.routingKey }
}

/** Whether the server has made this message a dead letter, by the exchange of its dead letters. */
export const isServersLetter = ({ fields, properties }: Pick<Incoming, "fields" | "properties">): boolean =>
  // One that took its place after browsing has come straight.
  Names.isDead(fields.exchange) || Names.isDead(textIn(properties.headers ?? {}, publishedHeaders.exchange) ?? "")

/** The properties of a message, and the exchange that its producer published it to. */
export const propertiesOf = (message: Pick<Incoming, "fields" | "properties">): Properties => {
  const { properties } = message
  const { headers = {} } = properties
  const exchange = textIn(headers, publishedHeaders.exchange)
  const routingKey = textIn(headers, publishedHeaders.routingKey)
  const told = exchange === undefined || routingKey === undefined ? unwritten(message) : { exchange, routingKey }
  const published = told !== undefined && Names.isDead(told.exchange) ? beforeDeath(headers) : told
  return published === undefined ? properties : { ...properties, published }
}

/** Where a message was published before the server made it a dead letter, by the newest record of that. */
const beforeDeath = (headers: Readonly<Record<string, unknown>>): Published | undefined => {
  const [{ exchange, "routing-keys": keys } = {}] = deathsOf(headers)
  const routingKey: unknown = Array.isArray(keys) ? keys[0] : undefined
  return typeof exchange === "string" && typeof routingKey === "string" ? { exchange, routingKey } : undefined
}
