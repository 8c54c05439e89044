/**
 * Work for fault tests: messages of which most go well, every fifth only at its third attempt, and every fiftieth never.
 *
 * So every settlement is on its way when something breaks. {@link Books} keep the account of it.
 */
import { Backoff, type Broker, type BrokerError, Consumer, type Message, Outgoing, RetryPolicy } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Books } from "./Books.ts"

const maxRetries = 4

/** Ids with a number at their end, from 0 on: `m0`, `m1`. The prefix must be one character. */
export const ids = (count: number, prefix = "m"): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`)

const numberOf = (id: string): number => Number(id.slice(1))

/** Whether a message always fails, and becomes a dead letter. */
export const isDoomed = (id: string): boolean => numberOf(id) % 50 === 0

/** Runs of its handler that a message takes when nothing breaks: more are runs that came again. */
export const runsOf = (id: string): number => (isDoomed(id) ? maxRetries + 1 : numberOf(id) % 5 === 0 ? 3 : 1)

/** What else there is to say of a message. */
export interface Details {
  /** Milliseconds. Default 0. */
  readonly delay?: number
  readonly headers?: Message.Headers
  /** When it is published, in milliseconds since the epoch. */
  readonly now: number
}

/** A message below the producer, whose body is its id as JSON. */
export const outgoing = (queue: string, id: string, { delay = 0, headers = {}, now }: Details): Outgoing.Outgoing =>
  Outgoing.make({ queue, id, body: new TextEncoder().encode(JSON.stringify(id)), headers, delay }, now)

/**
 * Publishes messages, so many at a time, each until it is confirmed: a failed publish may have been stored, and is sent
 * again.
 */
export const publishAll = (
  broker: Broker.Service,
  queue: string,
  all: ReadonlyArray<string>,
  portion = 100
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    for (let from = 0; from < all.length; from += portion) {
      const messages = all.slice(from, from + portion).map((id) => outgoing(queue, id, { now }))
      yield* Effect.retry(broker.publish(messages), Schedule.spaced(100))
    }
  })

/**
 * Starts a consumer that does the work and keeps the books.
 *
 * Its retries come after 100 ms, 4 of them at most, and 20 handlers run at a time, each for a millisecond.
 * The package's README has an example.
 */
export const start = (
  queue: string,
  books: Books
): Effect.Effect<Consumer.Consumer, Consumer.StartError, Broker.Broker | Scope.Scope> =>
  Consumer.start<string>(
    queue,
    {
      retry: RetryPolicy.make({ maxRetries, backoff: Backoff.constant(100) }),
      concurrency: 20,
      onEvent: books.onEvent
    },
    ({ attempts, id }) => {
      books.ran(id)
      const fails = isDoomed(id) || attempts < runsOf(id)
      return Effect.andThen(Effect.sleep(1), fails ? Effect.fail(new Error("no")) : Effect.void)
    }
  )
