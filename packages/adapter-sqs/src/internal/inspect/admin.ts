/** Counts, browses and purges for operators. */
import { type Backlog, type Broker, RetryPolicy } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { type Asked, browse, type Dependencies } from "./browse.ts"
import { counts } from "./counts.ts"

/** Queues that are counted at a time, each by a connection of its own. */
const atOnce = 64

/** Messages that are removed, or looked at, at a time. */
const pageSize = 160

const ready = (queue: string, limit: number) => ({ queue, from: "ready", limit, retry: RetryPolicy.make() }) as const

/**
 * Browses and removes until nothing more comes. `PurgeQueue` would also delete the messages that consumers have in flight, and
 * may be called once in a minute.
 */
const purge = (env: Dependencies, queue: string): Asked<number> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { next, remove } = yield* browse(env, ready(queue, Number.POSITIVE_INFINITY))
      let count = 0
      for (let page = yield* next(pageSize); page.length > 0; page = yield* next(pageSize)) {
        const [failed] = yield* remove(page.map(({ delivery }) => delivery))
        if (failed !== undefined) return yield* failed.error
        count += page.length
      }
      return count
    })
  )

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
  const counted = (queue: string) =>
    turns.withPermits(1)(
      Effect.catchIf(
        counts(env, queue),
        ({ reason }) => reason === "QueueMissing",
        () => Effect.succeed(missing)
      )
    )
  return {
    counts: counted,
    backlog: ({ queue }) => Effect.map(counted(queue), backlog),
    browse: (options) => browse(env, options),
    purge: (queue) => purge(env, queue)
  }
}
