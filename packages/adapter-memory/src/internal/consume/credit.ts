/** The consumers of a queue that have credit left: they take turns. */
import type { Consumer, Queue } from "../queues.ts"

/** Puts a consumer among the ready ones when it has credit left, and takes it out when it has none. */
export const update = (consumer: Consumer): void => {
  const { readyConsumers } = consumer.queue
  const isReady = consumer.receipts.size() < consumer.credit
  if (isReady === consumer.isReady) return
  consumer.isReady = isReady
  if (isReady) readyConsumers.push(consumer)
  // Mostly it has just got a message, and is the last one.
  else readyConsumers.splice(readyConsumers.lastIndexOf(consumer), 1)
}

/** Puts the consumer whose turn it was behind the others. */
export const rotate = ({ readyConsumers }: Queue): void => {
  if (readyConsumers.length > 1) readyConsumers.push(readyConsumers.shift()!)
}
