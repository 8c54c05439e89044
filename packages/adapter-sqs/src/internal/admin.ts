/** What operators see and do. */
import type { Admin } from "@requeue/core/Broker"
import type { BrokerError } from "@requeue/core/BrokerError"
import type { Delivery } from "@requeue/core/Delivery"
import * as Effect from "effect/Effect"
import type { Client, Message } from "./client.ts"
import type { Queues } from "./queues.ts"
import { toBrokerError } from "./toBrokerError.ts"
import { toDelivery } from "./toDelivery.ts"
import * as Wire from "./wire.ts"

/** Seconds for which messages that are looked at are hidden from others, should giving them back fail. */
const lookFor = 30

/** Seconds that a look waits for messages: with none, SQS asks only some of its servers. */
const waitFor = 1

export const make = (env: {
  readonly client: Client
  readonly queues: Queues
  /** Milliseconds since the epoch. */
  readonly now: () => number
}): Admin => {
  const { client, queues } = env

  const ask = <A>(operation: string, queue: string, run: (url: string) => Promise<A>): Effect.Effect<A, BrokerError> =>
    Effect.flatMap(queues.find(queue), ({ url }) =>
      Effect.tryPromise({ try: () => run(url), catch: (cause) => toBrokerError(cause, { operation, queue }) })
    )

  const counts = (queue: string) =>
    Effect.map(
      ask("counts", queue, (url) =>
        client.getQueueAttributes({
          QueueUrl: url,
          AttributeNames: [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed"
          ]
        })
      ),
      ({ Attributes: attributes = {} }) => ({
        ready: Number(attributes.ApproximateNumberOfMessages),
        inFlight: Number(attributes.ApproximateNumberOfMessagesNotVisible),
        delayed: Number(attributes.ApproximateNumberOfMessagesDelayed)
      })
    )

  const receive = (queue: string, count: number) =>
    Effect.map(
      ask("peek", queue, (url) =>
        client.receiveMessage({
          QueueUrl: url,
          MaxNumberOfMessages: Math.min(Wire.batchLimit, count),
          VisibilityTimeout: lookFor,
          WaitTimeSeconds: waitFor,
          MessageSystemAttributeNames: ["All"],
          MessageAttributeNames: ["All"]
        })
      ),
      ({ Messages = [] }) => Messages
    )

  const giveBack = (queue: string, messages: ReadonlyArray<Message>) =>
    ask("peek", queue, (url) =>
      client.changeMessageVisibilityBatch({
        QueueUrl: url,
        Entries: messages.map(({ ReceiptHandle }, index) => ({
          Id: String(index),
          ReceiptHandle,
          VisibilityTimeout: 0
        }))
      })
    )

  /** Receives until nothing more comes; all of it goes back, which SQS counts. */
  const look = Effect.fnUntraced(function* (queue: string, limit: number) {
    const batches: Array<ReadonlyArray<Message>> = []
    let left = limit
    while (left > 0) {
      const messages = yield* receive(queue, left)
      if (messages.length === 0) break
      batches.push(messages)
      left -= messages.length
    }
    yield* Effect.forEach(batches, (messages) => giveBack(queue, messages), { concurrency: 4, discard: true })
    return batches.flat()
  })

  return {
    counts,
    peek: (queue, limit) =>
      Effect.map(look(queue, limit), (messages) =>
        messages
          .map(
            (message): Delivery => ({
              ...toDelivery(message, { uncounted: 0, now: env.now() }),
              receipt: undefined
            })
          )
          .toSorted((a, b) => a.metadata.firstPublished - b.metadata.firstPublished)
      ),
    /** As many as SQS had counted about a minute ago. */
    purge: (queue) =>
      Effect.flatMap(counts(queue), ({ delayed, ready }) =>
        Effect.as(
          ask("purge", queue, (url) => client.purgeQueue({ QueueUrl: url })),
          ready + delayed
        )
      )
  }
}
