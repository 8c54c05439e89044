/** Names of delivered copies. Pure. */
import { digest, type Properties } from "../client.ts"
import type * as FieldTable from "../fieldTable.ts"
import * as Wire from "../wire.ts"

/**
 * Names a copy: the same at each of its deliveries, and for no other message; `undefined` for a foreign message.
 *
 * A service that forwards what it received repeats the copy's name, but not the rest. So the name is a digest of the
 * copy's name, the body, and all properties and headers but those that change on the way: the server's, our own, and the
 * expiration. The body may have megabytes, and anybody may have written it, which is not for `Digest` of the core.
 */
export const identify = (body: Uint8Array, properties: Properties): string | undefined => {
  const copy = properties.headers?.[Wire.copyHeader]
  return typeof copy === "string" ? nameOf(copy, body, properties, Wire.foreignEntries(properties)) : undefined
}

/** The same for a message of anybody: those that are alike in everything have the same. */
export const fingerprint = (body: Uint8Array, properties: Properties): string =>
  nameOf(String(properties.headers?.[Wire.copyHeader] ?? ""), body, properties, Wire.foreignEntries(properties))

/** The name that a publication will have, `copy` being the header's, and `foreign` the producer's headers. */
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
    // Servers from 4.0 on put headers in an order of their own.
    foreign
      .map(({ bytes }) => bytes.toString("latin1"))
      .toSorted()
      .join("")
  ]
  return digest(JSON.stringify(facts), body)
}
