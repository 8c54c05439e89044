/**
 * Messages that are delivered again though they are in flight, as a standard queue may do.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html
 */
import { randomUUID } from "node:crypto"
import type { Message } from "@aws-sdk/client-sqs"

export type Duplicates = ReturnType<typeof make>

export const make = () => {
  const again = new Map<string, Array<Message>>()
  let wanted = 0
  return {
    ask: (times: number): void => void (wanted += times),
    /** Records messages that were delivered. */
    seen: (queue: string, messages: ReadonlyArray<Message>): void => {
      const copied = messages.slice(0, wanted)
      wanted -= copied.length
      if (copied.length > 0) again.set(queue, [...(again.get(queue) ?? []), ...copied])
    },
    /** Takes the duplicates to deliver now, each with the handle of the server behind. */
    take: (queue: string, max: number): ReadonlyArray<{ readonly behind: string; readonly message: Message }> =>
      (again.get(queue)?.splice(0, max) ?? []).map((message) => {
        const count = Number(message.Attributes?.ApproximateReceiveCount)
        const attributes = { ...message.Attributes, ApproximateReceiveCount: String(count + 1) }
        return {
          behind: message.ReceiptHandle ?? "",
          message: {
            ...message,
            ReceiptHandle: randomUUID(),
            Attributes: attributes
          }
        }
      })
  }
}
