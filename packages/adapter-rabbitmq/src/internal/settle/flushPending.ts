/**
 * Settlements that the server keeps back. A quorum queue is sent 32 commands of a channel at a time; further ones wait until
 * those are carried out, and are forgotten when the channel closes: what was acknowledged is delivered again, and what was
 * given back counts as failed (3.10.8, 4.0.5, 4.3.6).
 */
import * as Client from "../client.ts"
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"
import * as Version from "../version.ts"

/** Settlements that are never kept back: a cancel sends three commands at most for each consumer of a channel. */
const few = 32 - 3 * 8

/** A delivery limit that a message does not reach by being given back once more, at the end of a consumer. */
const large = 100

/**
 * Whether {@link flush} helps, and harms nothing: it may take a message and give it back, which counts as a delivery before
 * 4.3.
 */
export const isFlushed = ({ deliveryLimit = 0, type }: RabbitMqQueue, serverVersion: string): boolean =>
  type === "quorum" && (Version.hasFailureCount(serverVersion) || deliveryLimit >= large)

/**
 * Whether some of so many settlements of a channel may be kept back. What was written before a cancel may be as well: its
 * answer follows the first 32.
 */
export const areThere = (written: number): boolean => written > few

/**
 * Waits until the queue has been sent all settlements of a channel, and returns what it has handed out meanwhile. No other
 * request tells: a queue adds a consumer, and takes it away, in the order of its commands, and it answers a passive declaration
 * at once.
 */
export const prove = async (
  channel: Client.Channel,
  queue: string,
  consumerTag: string
): Promise<ReadonlyArray<Client.Incoming>> => {
  const caught: Array<Client.Incoming> = []
  await Promise.all([
    channel.prefetch(1),
    channel.consume(queue, (message) => void (message && caught.push(message)), { consumerTag })
  ])
  await channel.cancel(consumerTag)
  return caught
}

/** The same, and gives back what was handed out. */
export const flush = async (channel: Client.Channel, queue: string, consumerTag: string): Promise<void> => {
  for (const { fields } of await prove(channel, queue, consumerTag)) Client.requeue(channel, fields.deliveryTag, "Nack")
}
