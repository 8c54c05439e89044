import { entries, type Entry } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

const contender = entries("sqs")

const of = (workload: string, library: string, name: string, batch = false): Entry =>
  contender(workload, library, name, { batch })

export const sqsConsume: Suite = {
  name: "sqs-consume",
  summary: "consume and delete 8,000 messages of 256 bytes, handler that awaits nothing",
  byDefault: true,
  venue: "sqs",
  rounds: 5,
  cases: (size) =>
    [1, 4].map((polls) => ({
      name: `${polls} ${polls === 1 ? "poll" : "polls"} at a time`,
      messages: size(8000),
      // Ten of them are two calls, and the SDK's code is not warm before some hundreds.
      warmUp: size(4000),
      job: { polls },
      entries: [
        of("consume", "awsSdk", "SDK, batches by hand", true),
        of("consume", "requeue", "requeue"),
        of("consume", "requeue", "requeue, batches", true),
        of("consume", "sqsConsumer", "sqs-consumer"),
        of("consume", "sqsConsumer", "sqs-consumer, batches", true),
        of("consume", "messageQueueToolkit", "message-queue-toolkit")
      ]
    }))
}

export const sqsRetry: Suite = {
  name: "sqs-retry",
  summary: "1,000 messages on SQS of which every second one fails once and is retried after 1 s",
  byDefault: true,
  venue: "sqs",
  rounds: 5,
  cases: (size) => [
    {
      name: "half fail once, 1 s",
      messages: size(1000),
      warmUp: 0,
      job: { polls: 4, delay: 1000, failing: 5, visibilityTimeout: 5000 },
      entries: [
        of("retry", "awsSdk", "SDK, visibility by hand", true),
        of("retry", "requeue", "requeue"),
        of("retry", "requeue", "requeue, batches", true),
        of("retry", "sqsConsumer", "sqs-consumer"),
        of("retry", "sqsConsumer", "sqs-consumer, batches", true)
      ]
    }
  ]
}
