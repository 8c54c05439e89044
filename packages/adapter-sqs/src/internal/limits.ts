/**
 * The quotas of SQS.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
 */

/** Bytes of a message and of a batch, attributes included. */
export const size = 1024 * 1024

/** Bytes that are kept back for Requeue's own attributes and for a user's usual headers. */
const overhead = 16 * 1024

/**
 * Bytes of the largest body, whatever they are: base64, in which bytes that are no text are written, takes 4 for 3. Text may
 * fill what SQS leaves beside the attributes.
 */
export const bodySize = Math.floor(((size - overhead) * 3) / 4)

/** Attributes of one message. */
export const attributes = 10

/** Entries of one batch, and messages of one receive. */
export const batch = 10

/** The longest `DelaySeconds`, in milliseconds. */
export const sendDelay = 900_000

/** The longest time from its receipt that a message can be invisible, in milliseconds. */
export const visibility = 43_200_000

/** Milliseconds that are kept back for the round trips of receive and call, and for clocks that differ. */
const margin = 10_000

/** The longest delay that visibility keeps when the handler takes no time, in milliseconds. */
export const hide = visibility - margin

/** Receives after which SQS can be told to move a message to the dead letters. */
export const maxReceiveCount = 1000
