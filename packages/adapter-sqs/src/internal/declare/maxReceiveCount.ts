/**
 * The `maxReceiveCount` of a queue: after so many receives, SQS's own redrive policy moves a message to the dead
 * letters. It is high enough never to interfere with Requeue's policy, and still ends a message that kills every
 * consumer.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
 */
import * as Limits from "../limits.ts"

/** Receives of one copy after which a retry is a new copy, whose count starts again. */
export const renewAt = 500

/** Receives of one copy that a policy needs; `Infinity` where it is unlimited and copies are not renewed. */
export const needed = (maxDeliveries: number, renews: boolean): number =>
  renews ? Math.min(maxDeliveries, renewAt) : maxDeliveries

/** The `maxReceiveCount` of a policy, with slack, since Requeue does not count all that SQS counts. */
export const planned = (maxDeliveries: number): number => Math.min(Limits.maxReceiveCount, 2 * maxDeliveries + 5)

/** Why a `maxReceiveCount` is too low for a policy that needs so many receives. */
export const tooFew = (count: number, receives: number): string =>
  `SQS would move a message after ${count} receives, without its error: ` +
  (receives === Number.POSITIVE_INFINITY ? "the policy is unlimited" : `the policy needs more than ${receives}`)

/**
 * How to live with a `maxReceiveCount`; empty where no policy can. On a FIFO queue SQS counts a message each time that it comes
 * behind another one of its group, and moves it unseen.
 */
export const lower = (count: number, fifo: boolean): string =>
  count < 2 || fifo ? "" : `, or set retry.maxDeliveries to ${count - 1}, and fewer retries than that`
