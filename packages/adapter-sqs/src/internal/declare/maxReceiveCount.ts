/**
 * SQS's own redrive policy behind Requeue's dead-lettering: how many receives it allows, so that it never interferes
 * with a policy and still ends a message that kills every consumer.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
 */

/** The highest `maxReceiveCount` that SQS takes. */
export const highest = 1000

/** Receives of one copy at which the next retry is made by a new copy, whose count starts again. */
export const renewAt = 500

/** Receives that a policy needs of one copy; `Infinity` where the policy is unlimited and copies cannot be renewed. */
export const needed = (maxAttempts: number, renews: boolean): number =>
  renews ? Math.min(maxAttempts, renewAt) : maxAttempts

/** With slack: deliveries that no handler has seen are received, too. */
export const planned = (maxAttempts: number): number => Math.min(highest, 2 * maxAttempts + 5)

/** Why so few receives will not do. */
export const tooFew = (count: number, receives: number): string =>
  `SQS would move a message after ${count} receives, without its error: ` +
  (receives === Number.POSITIVE_INFINITY ? "the policy is unlimited" : `the policy needs more than ${receives}`)
