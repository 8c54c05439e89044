/**
 * Settlements that the server holds back. The server sends a quorum queue 32 commands of a channel at a time. Further
 * commands wait until those are done, and are lost when the channel closes: acked messages are redelivered, and
 * requeued messages count as failed (3.10.8, 4.0.5, 4.3.6).
 */
import * as Client from "../client.ts"
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"
import * as Version from "../version.ts"

/** Settlements that are never held back: a cancel sends at most three commands for each consumer of a channel. */
const few = 32 - 3 * 8

/** A delivery limit that one more return at the end of a consumer does not reach. */
const large = 100

/**
 * Whether {@link flush} helps without harm. It may receive a message and return it, which counts as a delivery before
 * 4.3.
 */
export const isFlushed = ({ deliveryLimit = 0, type }: RabbitMqQueue, serverVersion: string): boolean =>
  type === "quorum" && (Version.hasFailureCount(serverVersion) || deliveryLimit >= large)

/**
 * Whether the server may hold back some of the `written` settlements of a channel. It may hold back those written
 * before a cancel too: its answer follows the first 32.
 */
export const areThere = (written: number): boolean => written > few

/**
 * Waits until the server has sent the queue all settlements of a channel. Returns what the queue has delivered
 * meanwhile. No other request proves this: a queue adds and removes a consumer in the order of its commands, but
 * answers a passive declare at once.
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

/** Does the same, and requeues what was delivered. */
export const flush = async (channel: Client.Channel, queue: string, consumerTag: string): Promise<void> => {
  for (const { fields } of await prove(channel, queue, consumerTag)) Client.requeue(channel, fields.deliveryTag, "Nack")
}
