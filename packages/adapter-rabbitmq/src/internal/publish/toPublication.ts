/** Makes the AMQP message of an outgoing message and its route. Pure. */
import { Delay, Metadata, type Outgoing } from "@requeue/core/port"
import type { Properties, Publication } from "../client.ts"
import { nameOf } from "../consume/identity.ts"
import * as Returns from "../consume/returns.ts"
import { textHeaders } from "../consume/textHeaders.ts"
import type { Route } from "../declare/topologies/topology.ts"
import type { Options } from "../native.ts"
import * as Wire from "../wire.ts"

/** The route straight into a queue, through the default exchange, so no other bound queue gets a copy. */
export const direct = (queue: string): Pick<Route, "exchange" | "routingKey" | "headers" | "expiration"> => ({
  exchange: "",
  routingKey: queue,
  headers: {},
  expiration: undefined
})

const unrouted = "Bind a queue to it for this routing key, or send with mandatory: false if the message may be lost"

type IsDelay = (queue: string) => boolean

/** The longest record of a foreign dead-lettering that is kept, in characters. */
const deathLimit = 1024

const shortText = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" && Buffer.byteLength(value) <= 255 ? value : undefined

/**
 * Writes a message. `copy` is its name, `returns` the returns of the copies that it replaces, if it does, and `isDelay`
 * recognises the adapter's delay queues by their names.
 *
 * `original` has the properties of the delivery that the message is a copy of. The copy keeps them as the producer wrote them, and
 * its headers byte by byte, unless the core has changed one. It does not keep the expiration, which would end the copy, nor the
 * user id, which the server would compare with the adapter's user.
 *
 * `asked` are the native options of the program, for a message that is not a copy.
 */
export const toPublication = (
  { body, headers, metadata, queue }: Outgoing.Outgoing,
  route: ReturnType<typeof direct>,
  names: { readonly copy: string; readonly isDelay: IsDelay; readonly returns?: number | undefined },
  original?: Properties,
  asked: Options = {}
): Publication => {
  const { copy, isDelay, returns } = names
  const shown = original === undefined ? {} : textHeaders(original)
  const changed = original === undefined ? headers : without(headers, shown)
  const { contents, others } = contentsOf(changed)
  const content = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const options = {
    mandatory: asked.mandatory ?? true,
    ...(original === undefined ? { ...first(metadata), ...asProperties(asked) } : kept(original)),
    ...contents,
    ...(route.expiration === undefined ? undefined : { expiration: String(route.expiration) })
  }
  const foreign = Wire.foreignEntries(original).filter(({ name }) => headers[name] === shown[name])
  return {
    queue,
    exchange: route.exchange,
    routingKey: route.routingKey,
    content,
    options,
    unrouted: asked.exchange === undefined ? undefined : unrouted,
    kept: foreign,
    typed: asked.headers,
    headers: {
      ...others,
      ...Wire.published(asked.exchange === undefined ? original?.published : route),
      ...deathRecord(original, isDelay),
      ...readable(metadata),
      ...route.headers,
      [Metadata.header]: Metadata.encode(metadata),
      [Wire.copyHeader]: copy,
      ...(returns === undefined
        ? undefined
        : { [Wire.returnsHeader]: Returns.write(returns, nameOf(copy, content, options, foreign)) })
    }
  }
}

/** The headers for which AMQP has a property, unless they are too long for it, and the other headers. */
export const contentsOf = ({
  "content-encoding": encoding,
  "content-type": type,
  ...others
}: Outgoing.Outgoing["headers"]) => {
  const contentEncoding = shortText(encoding)
  const contentType = shortText(type)
  return {
    contents: {
      ...(contentEncoding === undefined ? undefined : { contentEncoding }),
      ...(contentType === undefined ? undefined : { contentType })
    },
    others: {
      ...(encoding === undefined || contentEncoding !== undefined ? undefined : { "content-encoding": encoding }),
      ...(type === undefined || contentType !== undefined ? undefined : { "content-type": type }),
      ...others
    }
  }
}

/** The properties that the program has set. */
const asProperties = ({
  appId,
  correlationId,
  expiration,
  persistent,
  priority,
  replyTo,
  type,
  userId
}: Options): Properties => ({
  appId,
  correlationId,
  priority,
  replyTo,
  type,
  userId,
  ...(expiration === undefined
    ? undefined
    : { expiration: String(Delay.constrain("expiration", expiration, 1, Number.POSITIVE_INFINITY)) }),
  ...(persistent === false ? { deliveryMode: transient } : undefined)
})

/** The headers that differ from those of the original. */
const without = (headers: Outgoing.Outgoing["headers"], shown: Outgoing.Outgoing["headers"]) =>
  Object.fromEntries(Object.entries(headers).filter(([name, value]) => value !== shown[name]))

/** The delivery modes: a persistent message survives a restart of the server, a transient one does not. */
const persistent = 2
const transient = 1

/** The properties of a message that is not a copy. */
export const first = ({ firstPublished, id }: Metadata.Metadata): Properties => ({
  messageId: shortText(id),
  timestamp: Math.floor(firstPublished / 1000),
  deliveryMode: persistent
})

const fitting = (text: unknown): unknown =>
  typeof text === "string" && Buffer.byteLength(text) > 255 ? undefined : text

/** The largest timestamp that the driver writes. */
const lastTimestamp = 2 ** 64 - 2048

/**
 * The properties that a copy keeps from its original. Without a delivery mode, the producer has not chosen one. A value that is not
 * text is read as a longer text, which may be too long.
 */
export const kept = (original: Properties): Properties => {
  const { appId, contentEncoding, contentType, correlationId, messageId, priority, replyTo, timestamp, type } = original
  return {
    appId: fitting(appId),
    contentEncoding: fitting(contentEncoding),
    contentType: fitting(contentType),
    correlationId: fitting(correlationId),
    messageId: fitting(messageId),
    priority,
    replyTo: fitting(replyTo),
    timestamp: typeof timestamp === "number" ? Math.min(timestamp, lastTimestamp) : undefined,
    type: fitting(type),
    deliveryMode: original.deliveryMode ?? persistent
  }
}

/** The record of a foreign dead-lettering. */
const deathRecord = (original: Properties | undefined, isDelay: IsDelay) => {
  const headers = original?.headers ?? {}
  const known = headers[Wire.deathHeader]
  const death = typeof known === "string" ? known : deathOf(headers, isDelay)
  return death === undefined ? undefined : { [Wire.deathHeader]: death }
}

const deathOf = (headers: Readonly<Record<string, unknown>>, isDelay: IsDelay): string | undefined => {
  const foreign = Wire.deathsOf(headers).flatMap(({ count, exchange, queue, reason }) =>
    typeof queue === "string" && isDelay(queue) ? [] : [{ queue, reason, exchange, count }]
  )
  return foreign.length === 0 ? undefined : JSON.stringify(foreign).slice(0, deathLimit)
}

const readable = ({ attempts, deadLetter }: Metadata.Metadata): Readonly<Record<string, string>> | undefined => {
  if (deadLetter === undefined) return attempts === 0 ? undefined : { [Wire.readable.attempts]: String(attempts) }
  const { error, queue, reason } = deadLetter
  return {
    [Wire.readable.attempts]: String(deadLetter.attempts),
    [Wire.readable.reason]: reason,
    [Wire.readable.origin]: queue,
    [Wire.readable.error]: `${error.name}: ${error.message}`.slice(0, Metadata.errorLimit)
  }
}
