/**
 * The quotas of SQS.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
 */

/** Maximum bytes of a message and of a batch, attributes included. */
export const size = 1024 * 1024

/** Bytes reserved for Requeue's attributes and typical headers. */
const overhead = 16 * 1024

/**
 * Bytes of the largest binary body: base64 takes 4 bytes for 3. A text body may fill the whole message except the
 * attributes.
 */
export const bodySize = Math.floor(((size - overhead) * 3) / 4)

/** Maximum attributes of one message. */
export const attributes = 10

/** Maximum entries of one batch, and messages of one receive. */
export const batch = 10

/** The longest `DelaySeconds`, in milliseconds. */
export const sendDelay = 900_000

/** The longest time from its receipt that a message can be invisible, in milliseconds. */
export const visibility = 43_200_000

/** Milliseconds reserved for the round trips of receive and call, and for clock differences. */
const margin = 10_000

/** The longest delay by visibility if the handler takes no time, in milliseconds. */
export const hide = visibility - margin

/** The highest `maxReceiveCount`. */
export const maxReceiveCount = 1000
