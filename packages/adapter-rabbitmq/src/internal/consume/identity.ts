/** Names of delivered copies. Pure. */
import { digest, type Properties } from "../client.ts"
import * as Wire from "../wire.ts"

/**
 * Names a copy: the same at each of its deliveries, and for no other message; `undefined` for a foreign message.
 *
 * A service that forwards what it received repeats the copy's name, but not the rest. So the name is a digest of the
 * copy's name, the body, and all properties and headers but those that change on the way: the server's, our own, and the
 * expiration. The body may have megabytes, and anybody may have written it, which is not for `Digest` of the core.
 */
export const identify = (body: Uint8Array, properties: Properties): string | undefined =>
  typeof properties.headers?.[Wire.copyHeader] === "string" ? fingerprint(body, properties) : undefined

/** The same for a message of anybody: those that are alike in everything have the same. */
export const fingerprint = (body: Uint8Array, { headers = {}, ...properties }: Properties): string => {
  const copy = headers[Wire.copyHeader]
  const { appId, contentEncoding, contentType, correlationId, messageId, priority, replyTo, timestamp, type } =
    properties
  const foreign = Object.entries(headers).filter(([name]) => !Wire.isOwn(name) && !Wire.isServers(name))
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
    appId
  ]
  return digest(JSON.stringify([...facts, foreign]), body)
}
