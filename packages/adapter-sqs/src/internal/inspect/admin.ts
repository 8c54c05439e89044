/** Counts, peeks and purges for operators. */
import type { Backlog, Broker } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { textsIn } from "../answer.ts"
import * as Limits from "../limits.ts"
import { ask, type Asked, type Dependencies, look, open, peek } from "./look.ts"

/** A queue that is missing is taken for an empty one, and is not made by being looked at. */
const orEmpty = <A, B, R>(effect: Asked<A, R>, empty: B): Asked<A | B, R> =>
  Effect.catchIf(
    effect,
    ({ reason }) => reason === "QueueMissing",
    () => Effect.succeed(empty)
  )

/** Queues that are counted at a time, each by a connection of its own. */
const atOnce = 64

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

/**
 * Receives and deletes until nothing more comes. `PurgeQueue` would also delete the messages that consumers have in
 * flight, and may be called once in a minute.
 */
const purge = Effect.fnUntraced(function* (env: Dependencies, queue: string) {
  const { calls, receive } = yield* open(env, "purge", queue)
  let count = 0
  const some = Effect.gen(function* () {
    const messages = yield* receive(Limits.batch)
    const handles = messages.map(({ ReceiptHandle = "" }) => ReceiptHandle)
    const results = yield* calls.deleteMessages(handles)
    const kept = handles.filter((_, at) => results[at] !== undefined)
    count += messages.length - kept.length
    if (kept.length === 0) return messages.length > 0
    yield* calls.changeVisibility(kept.map((handle) => ({ handle, seconds: 0 })))
    return yield* results.find((error) => error !== undefined)!
  })
  // What one has received, it deletes or gives back, also where another one fails.
  const all = Effect.repeat(Effect.uninterruptible(some), { while: (goOn) => goOn })
  yield* Effect.all([all, all, all, all], { concurrency: "unbounded" })
  return count
})

const missing = { ready: 0, inFlight: 0, delayed: 0, isMissing: true }

/**
 * The numbers of a queue as SQS tells them, and why not the others.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
 */
const backlog = ({ delayed, inFlight, isMissing, ready }: Broker.Counts): Backlog.Backlog => ({
  ready,
  inFlight,
  delayed,
  backoff: delayed === 0 && inFlight === 0 ? [] : undefined,
  undelivered: 0,
  oldest: ready === 0 ? 0 : undefined,
  consumers: undefined,
  ...(isMissing === true ? { isMissing } : {}),
  remarks: {
    ...(inFlight === 0 ? {} : { inFlight: "counts retries in backoff as well, which SQS hides until they are due" }),
    ...(delayed === 0 && inFlight === 0
      ? {}
      : { backoff: "SQS does not tell when hidden and delayed messages are due" }),
    ...(ready === 0 ? {} : { oldest: "only CloudWatch has it, as ApproximateAgeOfOldestMessage" }),
    consumers: "SQS has no connections, so that it does not know who consumes"
  }
})

/** The broker's `admin`. */
export const make = (env: Dependencies): Broker.Admin => {
  const turns = Semaphore.makeUnsafe(atOnce)
  const counted = (queue: string) => turns.withPermits(1)(orEmpty(counts(env, queue), missing))
  return {
    counts: counted,
    backlog: ({ queue }) => Effect.map(counted(queue), backlog),
    peek: (queue, limit) => orEmpty(peek(env, queue, limit), []),
    look: (queue, limit) => orEmpty(look(env, queue, limit), { next: Effect.succeed([]) }),
    purge: (queue) => orEmpty(purge(env, queue), 0)
  }
}
