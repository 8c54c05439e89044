/** Names of queues: those of the world, and those on SQS. */

/** The name of a queue on SQS. */
export const onSqs = (queue: string): string => queue.replaceAll(".", "-")

/** The world's name of a queue on SQS. */
export const inWorld = (name: string): string => name.replaceAll("-", ".")
