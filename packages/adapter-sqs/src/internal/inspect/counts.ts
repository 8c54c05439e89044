/** Counts the messages of a queue, as SQS does. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { textsIn } from "../answer.ts"
import type { Client } from "../client.ts"
import type { Queues } from "../declare/declare.ts"
import { toBrokerError } from "../toBrokerError.ts"

const numberOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text))

/** Fails with `QueueMissing` where there is no such queue. */
export const counts = (
  { client, queues }: { readonly client: Client; readonly queues: Queues },
  queue: string
): Effect.Effect<Readonly<Record<"ready" | "inFlight" | "delayed", number | undefined>>, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { url } = yield* queues.see(queue)
    const answer = yield* Effect.tryPromise({
      try: () =>
        client.getQueueAttributes({
          QueueUrl: url,
          AttributeNames: [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed"
          ]
        }),
      catch: (cause) => toBrokerError(cause, { operation: "counts", queue })
    })
    const attributes = textsIn(answer, "Attributes")
    return {
      ready: numberOf(attributes["ApproximateNumberOfMessages"]),
      inFlight: numberOf(attributes["ApproximateNumberOfMessagesNotVisible"]),
      delayed: numberOf(attributes["ApproximateNumberOfMessagesDelayed"])
    }
  })
