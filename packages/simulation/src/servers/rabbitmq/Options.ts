/** The properties of a publication, from the options that the driver accepts. */
import type { Properties } from "./Message.ts"

const texts = ["contentType", "contentEncoding", "correlationId", "replyTo", "messageId", "type", "userId", "appId"]

const numberOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

/** The properties that the driver writes. It refuses texts that are too long. */
export const propertiesOf = (options: Readonly<Record<string, unknown>>): Properties => {
  for (const name of texts) {
    const value = options[name]
    if (value === undefined || (typeof value === "string" && Buffer.byteLength(value) < 256)) continue
    throw new TypeError(`Field '${name}' is the wrong type; must be a string (up to 255 chars)`)
  }
  const { deliveryMode, expiration, persistent, priority, timestamp } = options
  return {
    ...Object.fromEntries(texts.map((name) => [name, options[name]])),
    deliveryMode: persistent === undefined ? Number(deliveryMode ?? 1) : persistent === true ? 2 : 1,
    expiration: expiration === undefined ? undefined : String(expiration),
    priority: numberOf(priority),
    timestamp: numberOf(timestamp)
  }
}
