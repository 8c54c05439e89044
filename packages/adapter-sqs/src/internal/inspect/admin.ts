/** What operators see and do. */
import type { Broker, BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Calls from "../settle/receiptCalls.ts"
import type { Client, Message } from "../client.ts"
import type { Queues } from "../declare/declare.ts"
import { toBrokerError } from "../toBrokerError.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import * as Wire from "../wire.ts"

/** Seconds for which messages that are looked at are hidden from others, should giving them back fail. */
const lookFor = 30

/** Seconds that a look waits for messages: with none, SQS asks only some of its servers. */
const waitFor = 1

export const make = (env: {
  readonly client: Client
  readonly queues: Queues
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Milliseconds since the epoch. */
  readonly now: () => number
}): Broker.Admin => {
  const { client, queues } = env

  const ask = <A>(
    operation: string,
    queue: string,
    run: (url: string) => Promise<A>
  ): Effect.Effect<A, BrokerError.BrokerError> =>
    Effect.flatMap(queues.see(queue), ({ url }) =>
      Effect.tryPromise({ try: () => run(url), catch: (cause) => toBrokerError(cause, { operation, queue }) })
    )

  /** A queue that is not there is empty, and is not made by being looked at. */
  const ifThere = <A>(
    effect: Effect.Effect<A, BrokerError.BrokerError>,
    otherwise: A
  ): Effect.Effect<A, BrokerError.BrokerError> =>
    Effect.catchIf(
      effect,
      ({ reason }) => reason === "QueueMissing",
      () => Effect.succeed(otherwise)
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

  const open = (operation: string, queue: string) =>
    Effect.map(queues.see(queue), ({ url }) => ({
      calls: Calls.make({ client, queue, url: () => url, fork: env.fork }),
      receive: (count: number) =>
        Effect.map(
          ask(operation, queue, () =>
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
    }))

  /**
   * Receives until nothing more comes; all of it goes back, which SQS counts. Of a FIFO group, SQS shows what one receive
   * can have.
   */
  const look = Effect.fnUntraced(function* (queue: string, limit: number) {
    const { calls, receive } = yield* open("peek", queue)
    const seen: Array<Message> = []
    while (seen.length < limit) {
      const messages = yield* receive(limit - seen.length)
      if (messages.length === 0) break
      seen.push(...messages)
    }
    yield* calls.hide(seen.map(({ ReceiptHandle = "" }) => ({ handle: ReceiptHandle, seconds: 0 })))
    return seen
  })

  /**
   * Receives and deletes until nothing more comes. `PurgeQueue` would also delete what consumers have in their hands, and
   * may be called once in a minute.
   */
  const purge = Effect.fnUntraced(function* (queue: string) {
    const { calls, receive } = yield* open("purge", queue)
    let count = 0
    const some = Effect.gen(function* () {
      const messages = yield* receive(Wire.batchLimit)
      const answers = yield* calls.remove(messages.map(({ ReceiptHandle = "" }) => ReceiptHandle))
      const failed = answers.find((error) => error !== undefined)
      if (failed !== undefined) return yield* failed
      count += messages.length
      return messages.length > 0
    })
    const all = Effect.repeat(some, { while: (goOn) => goOn })
    yield* Effect.all([all, all, all, all], { concurrency: "unbounded" })
    return count
  })

  return {
    counts: (queue) => ifThere(counts(queue), { ready: 0, inFlight: 0, delayed: 0 }),
    peek: (queue, limit) =>
      Effect.map(ifThere(look(queue, limit), []), (messages) =>
        messages
          .map(
            (message): Delivery.Delivery => ({
              ...toDelivery(message, { uncounted: 0, now: env.now() }),
              receipt: undefined
            })
          )
          .toSorted((a, b) => a.metadata.firstPublished - b.metadata.firstPublished)
      ),
    purge: (queue) => ifThere(purge(queue), 0)
  }
}
