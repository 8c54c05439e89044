/** Where the adapter keeps the messages of a queue, and how it writes them, as the documentation describes it. */
import { Metadata } from "@requeue/core/port"
import type { Delivery, Message } from "@requeue/core"

/** A channel of a topic. */
export interface Place {
  readonly topic: string
  readonly channel: string
}

/** Returns the place of a queue without a channel of its own, or of its dead letters. */
export const placeOf = (queue: string): Place => ({
  topic: queue.endsWith(".dlq") ? `${queue.slice(0, -".dlq".length)}.requeue.dlq` : queue,
  channel: "requeue"
})

/** Returns the places of a queue and of its retries. */
export const placesOf = (queue: string): ReadonlyArray<Place> => {
  const { channel, topic } = placeOf(queue)
  return [
    { topic, channel },
    { topic: `${topic}.requeue.retry`, channel }
  ]
}

const magic = Buffer.from([0, 0x52, 0x4b, 1])

/** Reads a stored message: its envelope, if it has one, and its body. */
export const read = (
  bytes: Buffer,
  { id, stored }: { readonly id: string; readonly stored: number }
): Omit<Delivery.Delivery, "receipt"> => {
  if (bytes.compare(magic, 0, 4, 0, 4) !== 0) {
    return { body: bytes, headers: {}, attempts: 0, metadata: Metadata.make(id, stored) }
  }
  const end = 6 + bytes.readUInt16BE(4)
  const { h = {}, m } = JSON.parse(bytes.toString("utf8", 6, end)) as {
    readonly m: unknown
    readonly h?: Message.Headers
  } // the envelope
  const metadata = Metadata.fromJson(m, stored)!
  return { body: bytes.subarray(end), headers: h, attempts: metadata.attempts, metadata }
}
