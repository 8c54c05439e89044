/** What AWS knows of its queues when it takes a call, and the server behind does not look at. */
import { invalidParameter, named, type AwsError } from "./AwsError.ts"
import * as Call from "./Call.ts"
import { deadLetterTarget } from "./queueRules.ts"
import type { Ask } from "./upstream.ts"

const purgePause = 60_000

export type Queues = ReturnType<typeof make>

export const make = (now: () => number) => {
  const visibility = new Map<string, number>()
  const purged = new Map<string, number>()
  return {
    /** Seconds that a received message is invisible if the call does not say. */
    visibilityTimeout: async ({ body, queue }: Call.Call, ask: Ask): Promise<number> => {
      const known = visibility.get(queue)
      if (known !== undefined) return known
      const { body: answer } = await ask("GetQueueAttributes", {
        QueueUrl: body.QueueUrl,
        AttributeNames: ["VisibilityTimeout"]
      })
      const { VisibilityTimeout = "30" } = (answer["Attributes"] ?? {}) as { VisibilityTimeout?: string }
      visibility.set(queue, Number(VisibilityTimeout))
      return Number(VisibilityTimeout)
    },
    refused: async (call: Call.Call, ask: Ask): Promise<AwsError | undefined> => {
      if (["CreateQueue", "SetQueueAttributes", "DeleteQueue"].includes(call.action)) visibility.delete(call.queue)
      if (call.action === "PurgeQueue") {
        // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_PurgeQueue.html
        if (now() - (purged.get(call.queue) ?? -Infinity) < purgePause) return named("PurgeQueueInProgress")
        purged.set(call.queue, now())
      }
      // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
      const target = deadLetterTarget(call)
      if (target === undefined) return undefined
      const about = "Value for parameter RedrivePolicy is invalid. Reason: "
      if (target.endsWith(".fifo") !== Call.isFifo(call)) {
        return invalidParameter(`${about}Dead-letter queue must be same type of queue as the source.`)
      }
      const found = await ask("GetQueueUrl", { QueueName: target })
      return found.status === 200 ? undefined : invalidParameter(`${about}Dead letter target does not exist.`)
    }
  }
}
