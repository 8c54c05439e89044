/** Counts, peeks and purges for operators. */
import type { Broker, BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { textsIn } from "../answer.ts"
import type { Client, Message } from "../client.ts"
import { messagesIn } from "../consume/received.ts"
import type { Sources } from "../consume/sources.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import type { Queues } from "../declare/declare.ts"
import * as Limits from "../limits.ts"
import * as ReceiptCalls from "../settle/receiptCalls.ts"
import { toBrokerError } from "../toBrokerError.ts"

/** Seconds for which messages that are peeked at are hidden from others, should giving them back fail. */
const peekVisibility = 30

/** Seconds that a receive waits for messages. With none, SQS asks only some of its servers. */
const waitTime = 1

interface Dependencies {
  readonly client: Client
  readonly queues: Queues
  readonly sources: Sources
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

type Asked<A> = Effect.Effect<A, BrokerError.BrokerError>

const ask = <A>(queues: Queues, operation: string, queue: string, run: (url: string) => Promise<A>): Asked<A> =>
  Effect.flatMap(queues.see(queue), ({ url }) =>
    Effect.tryPromise({ try: () => run(url), catch: (cause) => toBrokerError(cause, { operation, queue }) })
  )

/** A queue that is missing is taken for an empty one, and is not made by being looked at. */
const orEmpty = <A>(effect: Asked<A>, empty: A): Asked<A> =>
  Effect.catchIf(
    effect,
    ({ reason }) => reason === "QueueMissing",
    () => Effect.succeed(empty)
  )

const numberOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text))

const counts = ({ client, queues }: Dependencies, queue: string) =>
  Effect.map(
    ask(queues, "counts", queue, (url) =>
      client.getQueueAttributes({
        QueueUrl: url,
        AttributeNames: [
          "ApproximateNumberOfMessages",
          "ApproximateNumberOfMessagesNotVisible",
          "ApproximateNumberOfMessagesDelayed"
        ]
      })
    ),
    (answer) => {
      const attributes = textsIn(answer, "Attributes")
      return {
        ready: numberOf(attributes["ApproximateNumberOfMessages"]),
        inFlight: numberOf(attributes["ApproximateNumberOfMessagesNotVisible"]),
        delayed: numberOf(attributes["ApproximateNumberOfMessagesDelayed"])
      }
    }
  )

const open = ({ client, fork, queues }: Dependencies, operation: string, queue: string) =>
  Effect.map(queues.see(queue), ({ url }) => ({
    calls: ReceiptCalls.make({ client, queue, url: () => url, fork }),
    receive: (count: number) =>
      Effect.map(
        ask(queues, operation, queue, () =>
          client.receiveMessage({
            QueueUrl: url,
            MaxNumberOfMessages: Math.min(Limits.batch, count),
            VisibilityTimeout: peekVisibility,
            WaitTimeSeconds: waitTime,
            MessageSystemAttributeNames: ["All"],
            MessageAttributeNames: ["All"]
          })
        ),
        messagesIn
      )
  }))

/**
 * Receives until nothing more comes, and gives all of it back; SQS counts these receives. Of a FIFO group, SQS shows
 * only the messages that one receive can bring.
 */
const peek = Effect.fnUntraced(function* (env: Dependencies, queue: string, limit: number) {
  const { calls, receive } = yield* open(env, "peek", queue)
  const seen: Array<Message> = []
  while (seen.length < limit) {
    const messages = yield* receive(limit - seen.length)
    if (messages.length === 0) break
    seen.push(...messages)
  }
  yield* env.sources.learn(seen)
  yield* calls.changeVisibility(seen.map(({ ReceiptHandle = "" }) => ({ handle: ReceiptHandle, seconds: 0 })))
  return seen
})

/**
 * Receives and deletes until nothing more comes. `PurgeQueue` would also delete the messages that consumers have in
 * flight, and may be called once in a minute.
 */
const purge = Effect.fnUntraced(function* (env: Dependencies, queue: string) {
  const { calls, receive } = yield* open(env, "purge", queue)
  let count = 0
  const some = Effect.gen(function* () {
    const messages = yield* receive(Limits.batch)
    const results = yield* calls.deleteMessages(messages.map(({ ReceiptHandle = "" }) => ReceiptHandle))
    const failed = results.find((error) => error !== undefined)
    if (failed !== undefined) return yield* failed
    count += messages.length
    return messages.length > 0
  })
  const all = Effect.repeat(some, { while: (goOn) => goOn })
  yield* Effect.all([all, all, all, all], { concurrency: "unbounded" })
  return count
})

/** The broker's `admin`. */
export const make = (env: Dependencies): Broker.Admin => ({
  counts: (queue) => orEmpty(counts(env, queue), { ready: 0, inFlight: 0, delayed: 0 }),
  peek: (queue, limit) =>
    Effect.map(orEmpty(peek(env, queue, limit), []), (messages) =>
      messages
        .map(
          (message): Delivery.Delivery => ({
            ...toDelivery(message, { uncounted: 0, before: env.sources.before(message).count, now: env.now() }),
            receipt: undefined
          })
        )
        .toSorted((a, b) => a.metadata.firstPublished - b.metadata.firstPublished)
    ),
  purge: (queue) => orEmpty(purge(env, queue), 0)
})
