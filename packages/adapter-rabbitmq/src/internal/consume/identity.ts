/** Names of delivered copies. Pure. */
import { digest, type Properties } from "../client.ts"
import type * as FieldTable from "../fieldTable.ts"
import * as Wire from "../wire.ts"

/**
 * Names a copy: the same at each of its deliveries, and different for every other message; `undefined` for a foreign
 * message.
 *
 * A service that forwards a message may repeat the copy's name, but not the rest. So this name is a digest of the
 * copy's name, the body, and all properties and headers that do not change on the way. Those that change are the
 * server's, the adapter's and the expiration. The body may have megabytes from an untrusted producer, so core's
 * `Digest` does not fit.
 */
export const identify = (body: Uint8Array, properties: Properties): string | undefined => {
  const copy = properties.headers?.[Wire.copyHeader]
  return typeof copy === "string" ? nameOf(copy, body, properties, Wire.foreignEntries(properties)) : undefined
}

/** Returns the same digest for any message, foreign ones included. Identical messages have the same fingerprint. */
export const fingerprint = (body: Uint8Array, properties: Properties): string =>
  nameOf(String(properties.headers?.[Wire.copyHeader] ?? ""), body, properties, Wire.foreignEntries(properties))

/** Returns the name of a publication with this `copy` header and these `foreign` headers of the producer. */
export const nameOf = (
  copy: string,
  body: Uint8Array,
  properties: Properties,
  foreign: ReadonlyArray<FieldTable.Entry>
): string => {
  const { appId, contentEncoding, contentType, correlationId, messageId, priority, replyTo, timestamp, type } =
    properties
  const facts = [
    copy,
    messageId,
    timestamp,
    contentType,
    contentEncoding,
    priority,
    correlationId,
    replyTo,
    type,
    appId,
    // Servers from 4.0 on reorder headers.
    foreign
      .map(({ bytes }) => bytes.toString("latin1"))
      .toSorted()
      .join("")
  ]
  return digest(JSON.stringify(facts), body)
}
