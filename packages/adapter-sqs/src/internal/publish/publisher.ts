/** Publishes messages in batches for each queue, in order on FIFO queues. */
import { BrokerError, Failure, type Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as BatchCall from "../batchCall.ts"
import type { Client, MessageAttributeValue } from "../client.ts"
import type { Queue, Queues } from "../declare/declare.ts"
import * as RequestBatcher from "../requestBatcher.ts"
import { type Publication, toPublication } from "./toPublication.ts"

/** A message. For a copy: also the attributes and SQS's id of its delivery. */
interface Item {
  readonly message: Outgoing.Outgoing
  readonly original?: Readonly<Record<string, MessageAttributeValue>> | undefined
  readonly source?: string | undefined
}

/** Whether the queue of a message may be created. */
const mayCreate = ({ message }: Item): boolean => message.create !== false

/** Publishes to every queue. */
export interface Publisher {
  /** Ends when SQS has answered for each message. Returns the errors in order. */
  readonly publish: (items: ReadonlyArray<Item>) => Effect.Effect<BatchCall.Results>
}

/** Maximum number of concurrent calls to one standard queue. */
const parallel = 16

/**
 * Encodes a message. Refuses one that cannot be encoded, for example because its body was transferred to another
 * thread.
 */
const encode = ({ message, original, source }: Item, fifo: boolean): ReturnType<typeof toPublication> => {
  try {
    return toPublication(message, fifo, original, source)
  } catch (cause) {
    const { queue } = message
    const detail = `the message cannot be encoded: ${Failure.summarize(cause).message}`
    return Result.fail(
      new BrokerError.BrokerError({ broker: "sqs", operation: "publish", queue, reason: "Unsupported", detail })
    )
  }
}

/** Makes a publisher. It finds or creates a queue at the first message to it. */
export const make = (env: {
  readonly client: Client
  readonly queues: Queues
  readonly fork: (effect: Effect.Effect<unknown>) => void
}): Publisher => {
  const { client, fork, queues } = env
  const batchers = new Map<string, RequestBatcher.RequestBatcher<Publication>>()

  const batcherFor = (queue: string, { fifo, url }: Queue): RequestBatcher.RequestBatcher<Publication> => {
    const known = batchers.get(url)
    if (known !== undefined) return known
    const batcher = RequestBatcher.make<Publication>({
      call: (items) =>
        BatchCall.call(
          items.map(({ entry }) => entry),
          {
            context: { operation: "publish", queue },
            ask: (Entries) => client.sendMessageBatch({ QueueUrl: url, Entries }),
            isIdempotent: false
          }
        ),
      sizeOf: ({ size }) => size,
      parallel: fifo ? 1 : parallel,
      fork
    })
    batchers.set(url, batcher)
    return batcher
  }

  /** Publishes items that either all may create the queue, or none. */
  const attempt = (queue: string, items: ReadonlyArray<Item>): Effect.Effect<BatchCall.Results> =>
    Effect.matchEffect((items.every(mayCreate) ? queues.find : queues.see)(queue), {
      onFailure: (error) => Effect.succeed(items.map(() => error)),
      onSuccess: (found) => {
        const publications = items.map((item) => encode(item, found.fifo))
        const good = publications.flatMap((it) => (Result.isSuccess(it) ? [it.success] : []))
        return Effect.map(batcherFor(queue, found).submit(good), (results) => {
          let next = 0
          return publications.map((it) => (Result.isFailure(it) ? it.failure : results[next++]))
        })
      }
    })

  /** Publishes to one queue. A deleted queue is recreated once, if allowed. */
  const toQueue = (queue: string, items: ReadonlyArray<Item>): Effect.Effect<BatchCall.Results> =>
    Effect.flatMap(attempt(queue, items), (results) => {
      if (!results.some((error) => error?.reason === "QueueMissing")) return Effect.succeed(results)
      queues.forget(queue)
      return Effect.map(attempt(queue, items), (second) =>
        second.map((error, index) => BrokerError.ofRepetition(results[index], error))
      )
    })

  return {
    publish: Effect.fnUntraced(function* (items) {
      const [made, existing] = [items.filter(mayCreate), items.filter((item) => !mayCreate(item))]
      const byQueue = [made, existing].flatMap((some) => [...Map.groupBy(some, ({ message }) => message.queue)])
      const errors = new Map<Item, BrokerError.BrokerError | undefined>()
      const publishTo = ([queue, some]: (typeof byQueue)[number]) =>
        Effect.map(toQueue(queue, some), (results) => {
          for (const [index, item] of some.entries()) errors.set(item, results[index])
        })
      yield* Effect.forEach(byQueue, publishTo, { concurrency: "unbounded", discard: true })
      return items.map((item) => errors.get(item))
    })
  }
}
