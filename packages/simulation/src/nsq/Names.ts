/** Names of queues: those of the world, and topics of nsqd, as the adapter's documentation describes them. */

/** The topic of a queue. */
export const topicOf = (queue: string): string =>
  queue.endsWith(".dlq") ? `${queue.slice(0, -".dlq".length)}.requeue.dlq` : queue

/** The queue that a topic belongs to. Retries are in their queue. */
export const inWorld = (topic: string): string =>
  topic.replace(/\.requeue\.retry$/, "").replace(/\.requeue(?=\.dlq$)/, "")
