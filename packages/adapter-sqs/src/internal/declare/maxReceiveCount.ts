/**
 * The `maxReceiveCount` of a queue: the receives after which SQS's redrive policy moves a message to the dead-letter
 * queue. High enough never to interfere with Requeue's policy, but still removes a message that kills every consumer.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
 */
import * as Limits from "../limits.ts"

/** Receives of one copy after which a retry is a new copy with a new count. */
export const renewAt = 500

/** Returns how many receives of one copy a policy needs; `Infinity` if it is unlimited and copies are not renewed. */
export const needed = (maxDeliveries: number, renews: boolean): number =>
  renews ? Math.min(maxDeliveries, renewAt) : maxDeliveries

/** Returns the `maxReceiveCount` of a policy. It is higher than needed, since SQS counts more receives than Requeue. */
export const planned = (maxDeliveries: number): number => Math.min(Limits.maxReceiveCount, 2 * maxDeliveries + 5)

/** Describes why a `maxReceiveCount` is too low for a policy. */
export const tooFew = (count: number, receives: number): string =>
  `SQS would move a message after ${count} receives, without its error: ` +
  (receives === Number.POSITIVE_INFINITY ? "the policy is unlimited" : `the policy needs more than ${receives}`)

/**
 * Returns a remedy to keep a `maxReceiveCount`; empty if no policy fits. On a FIFO queue SQS also counts receives of
 * messages that wait after another one of their group, and may move them unseen.
 */
export const lower = (count: number, fifo: boolean): string =>
  count < 2 || fifo ? "" : `, or set retry.maxDeliveries to ${count - 1}, and fewer retries than that`
