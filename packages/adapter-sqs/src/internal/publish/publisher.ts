/** Sends messages: gathered per queue, in order where the queue keeps order. */
import type { BrokerError, Outgoing } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Batch from "../batchCall.ts"
import type { Client, MessageAttributeValue } from "../client.ts"
import * as Gather from "../requestBatcher.ts"
import type { Queue, Queues } from "../declare/declare.ts"
import { type Sized, toEntry } from "./toPublication.ts"

/** A message, and the attributes of the delivery that it is a copy of. */
interface Item {
  readonly message: Outgoing.Outgoing
  readonly original?: Readonly<Record<string, MessageAttributeValue>> | undefined
}

export interface Sender {
  /** What became of each, in order. */
  readonly send: (items: ReadonlyArray<Item>) => Effect.Effect<Batch.Answers>
}

/** Calls under way to one standard queue. */
const parallel = 16

export const make = (env: {
  readonly client: Client
  readonly queues: Queues
  readonly fork: (effect: Effect.Effect<unknown>) => void
}): Sender => {
  const gathers = new Map<string, Gather.Gather<Sized>>()

  const gatherFor = (name: string, { fifo, url }: Queue): Gather.Gather<Sized> => {
    const known = gathers.get(url)
    if (known !== undefined) return known
    const gather = Gather.make<Sized>({
      call: (items) =>
        Batch.call(
          items.map(({ entry }) => entry),
          {
            context: { operation: "publish", queue: name },
            ask: (Entries) => env.client.sendMessageBatch({ QueueUrl: url, Entries }),
            isIdempotent: false
          }
        ),
      sizeOf: ({ size }) => size,
      parallel: fifo ? 1 : parallel,
      fork: env.fork
    })
    gathers.set(url, gather)
    return gather
  }

  const attempt = (queue: string, items: ReadonlyArray<Item>): Effect.Effect<Batch.Answers> =>
    Effect.matchEffect(env.queues.find(queue), {
      onFailure: (error) => Effect.succeed(items.map(() => error)),
      onSuccess: (found) => {
        const entries = items.map(({ message, original }) => toEntry(message, found.fifo, original))
        const good = entries.flatMap((entry) => (Result.isSuccess(entry) ? [entry.success] : []))
        return Effect.map(gatherFor(queue, found).submit(good), (answers) => {
          let next = 0
          return entries.map((entry) => (Result.isFailure(entry) ? entry.failure : answers[next++]))
        })
      }
    })

  /** Somebody has deleted the queue: it is made again where it may be, once. */
  const toQueue = (queue: string, items: ReadonlyArray<Item>): Effect.Effect<Batch.Answers> =>
    Effect.flatMap(attempt(queue, items), (answers) => {
      if (!answers.some((error) => error?.reason === "QueueMissing")) return Effect.succeed(answers)
      env.queues.forget(queue)
      return attempt(queue, items)
    })

  return {
    send: (items) =>
      Effect.gen(function* () {
        const byQueue = [...Map.groupBy(items, ({ message }) => message.queue)]
        const answered = new Map<Item, BrokerError.BrokerError | undefined>()
        const answer = ([queue, some]: (typeof byQueue)[number]) =>
          Effect.map(toQueue(queue, some), (answers) => {
            for (const [index, item] of some.entries()) answered.set(item, answers[index])
          })
        yield* Effect.forEach(byQueue, answer, { concurrency: "unbounded", discard: true })
        return items.map((item) => answered.get(item))
      })
  }
}
