/** Recently deleted or purged queues, which AWS remembers for a minute. */
import { named, type AwsError } from "./AwsError.ts"
import type * as Call from "./Call.ts"

const pause = 60_000

export type Recent = ReturnType<typeof make>

export const make = (now: () => number) => {
  const deleted = new Map<string, number>()
  const purged = new Map<string, number>()
  const isRecent = (time = -Infinity): boolean => now() - time < pause
  return {
    deleted: (queue: string): void => void deleted.set(queue, now()),
    refused: ({ action, queue }: Call.Call): AwsError | undefined => {
      if (action === "CreateQueue" && isRecent(deleted.get(queue))) return named("QueueDeletedRecently")
      // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_PurgeQueue.html
      if (action !== "PurgeQueue") return undefined
      if (isRecent(purged.get(queue))) {
        const message = `Only one PurgeQueue operation on ${queue} is allowed every 60 seconds.`
        return { ...named("PurgeQueueInProgress"), message }
      }
      purged.set(queue, now())
      return undefined
    }
  }
}
