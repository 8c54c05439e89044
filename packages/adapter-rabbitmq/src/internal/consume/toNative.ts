/** Converts the properties of a delivered message to the facts for handlers. Pure and total. */
import type { Message } from "@requeue/core/port"
import type { Properties } from "../client.ts"
import { told } from "../native.ts"

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)
const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

/** The delivery mode of a message that a server restart deletes; also the default. */
const transient = 1

/** Returns the facts of a message. `queue` is the routing key of a message that was sent directly to its queue. */
export const toNative = (properties: Properties, queue: string): Message.Native => {
  const { deliveryMode = transient, headers = {}, published = { exchange: "", routingKey: queue } } = properties
  const seconds = number(properties.timestamp)
  return told({
    ...published,
    headers,
    appId: text(properties.appId),
    contentEncoding: text(properties.contentEncoding),
    contentType: text(properties.contentType),
    correlationId: text(properties.correlationId),
    expiration: text(properties.expiration),
    messageId: text(properties.messageId),
    persistent: deliveryMode !== transient,
    priority: number(properties.priority),
    replyTo: text(properties.replyTo),
    timestamp: seconds === undefined ? undefined : seconds * 1000,
    type: text(properties.type),
    userId: text(properties.userId)
  })
}
