/** The rules of AWS that depend on the state of queues, which the server behind does not check. */
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
    /** Answers the seconds for which a received message is invisible where the call does not say. */
    visibilityTimeout: async ({ body, queue }: Call.Call, ask: Ask): Promise<number> => {
      const known = visibility.get(queue)
      if (known !== undefined) return known
      const { body: answer } = await ask("GetQueueAttributes", {
        QueueUrl: body.QueueUrl,
        AttributeNames: ["VisibilityTimeout"]
      })
      const found = (answer["Attributes"] ?? {}) as { readonly VisibilityTimeout?: string } // as AWS documents it
      const { VisibilityTimeout = "30" } = found
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
