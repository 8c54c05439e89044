/** From an outgoing message and its route to an AMQP message. Pure. */
import { Metadata, type Outgoing } from "@requeue/core/adapter-kit"
import type { Properties, Publication } from "../client.ts"
import type { Route } from "../declare/topologies/topology.ts"
import * as Wire from "../wire.ts"

/** The route straight into a queue: past every exchange, so that no other queue that is bound gets a copy. */
export const direct = (queue: string): Pick<Route, "exchange" | "routingKey" | "headers" | "expiration"> => ({
  exchange: "",
  routingKey: queue,
  headers: {},
  expiration: undefined
})

/** The longest record of a foreign death that is kept, in characters. */
const deathLimit = 1024

const shortText = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" && Buffer.byteLength(value) <= 255 ? value : undefined

/**
 * Writes a message. `copy` is its name, `returns` the returns of the copies that it replaces, and `own` the start of the
 * adapter's names.
 *
 * `original` has the properties of the delivery that it is a copy of. Those that the core does not know are kept:
 * priority, correlation, headers that are no text. The expiration is not: the copy would be lost when it ends. Nor is the
 * user id, which the server would compare with ours.
 */
export const toPublication = (
  { body, headers, metadata, queue }: Outgoing.Outgoing,
  route: ReturnType<typeof direct>,
  { copy, own, returns = 0 }: { readonly copy: string; readonly own: string; readonly returns?: number | undefined },
  original?: Properties
): Publication => {
  const { "content-type": contentType, ...others } = headers
  const type = shortText(contentType)
  return {
    queue,
    exchange: route.exchange,
    routingKey: route.routingKey,
    content: Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    options: {
      persistent: true,
      mandatory: true,
      ...(original && kept(original)),
      messageId: shortText(metadata.id),
      timestamp: Math.floor(metadata.firstPublished / 1000),
      contentType: type ?? original?.contentType,
      expiration: route.expiration === undefined ? undefined : String(route.expiration)
    },
    headers: {
      // The content type is a property, unless it is too long for one.
      ...(type === undefined ? headers : others),
      ...(original && foreignHeaders(original, headers, own)),
      ...readable(metadata),
      ...route.headers,
      [Metadata.header]: Metadata.encode(metadata),
      [Wire.copyHeader]: copy,
      ...(returns === 0 ? undefined : { [Wire.returnsHeader]: returns })
    }
  }
}

const kept = ({ appId, contentEncoding, correlationId, priority, replyTo, type }: Properties) => ({
  appId,
  contentEncoding,
  correlationId,
  priority,
  replyTo,
  type
})

/** Headers of the original that are no text, as they were, and the record of a foreign dead-lettering. */
const foreignHeaders = ({ headers = {} }: Properties, text: Readonly<Record<string, string>>, own: string) => {
  const result: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (Wire.isServers(name) || Wire.isOwn(name)) continue
    if (typeof value !== "string" && name in text) result[name] = value
  }
  const death = headers[Wire.deathHeader] ?? deathOf(headers, own)
  return death === undefined ? result : { ...result, [Wire.deathHeader]: death }
}

const deathOf = (headers: Readonly<Record<string, unknown>>, own: string): string | undefined => {
  const foreign = Wire.deathsOf(headers).flatMap(({ count, exchange, queue, reason }) =>
    typeof queue === "string" && queue.startsWith(own) ? [] : [{ queue, reason, exchange, count }]
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
