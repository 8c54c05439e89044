/**
 * Work for fault tests: most messages succeed at once, every fifth at its third attempt, and every fiftieth never.
 *
 * So settlements of every kind are in flight when something breaks. {@link Books} record the outcomes.
 */
import { Backoff, type Broker, type BrokerError, Consumer, type Message, RetryPolicy } from "@requeue/core"
import { Outgoing } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Books } from "./Books.ts"

const maxRetries = 4

/** Makes ids that end with their number: `m0`, `m1` and so on. The prefix must be one character; default `m`. */
export const ids = (count: number, prefix = "m"): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`)

const numberOf = (id: string): number => Number(id.slice(1))

/** Whether a message fails at every attempt, and becomes a dead letter. */
export const isDoomed = (id: string): boolean => numberOf(id) % 50 === 0

/** The number of handler runs that a message needs if nothing breaks. */
export const runsOf = (id: string): number => (isDoomed(id) ? maxRetries + 1 : numberOf(id) % 5 === 0 ? 3 : 1)

/** Further details of a message. */
export interface Details {
  /** Milliseconds until the message is delivered. Default 0. */
  readonly delay?: number
  readonly headers?: Message.Headers
  /** When the message is published, in milliseconds since 1970. */
  readonly now: number
}

/** Makes a message for `Broker.publish`; its body is its id as JSON. */
export const outgoing = (queue: string, id: string, { delay = 0, headers = {}, now }: Details): Outgoing.Outgoing =>
  Outgoing.make({ queue, id, body: new TextEncoder().encode(JSON.stringify(id)), headers, delay }, now)

/**
 * Publishes messages in portions, and repeats each portion until the broker confirms it. A message whose confirmation was lost
 * may be stored twice. `portion` is a number of messages; default 100.
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
 * Starts a consumer that handles the messages, and records each run and each outcome in `books`.
 *
 * It retries a message after 100 ms, at most 4 times. 20 handlers run at a time, each for one millisecond. The package's
 * README has an example.
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
