/** Counts, browses and purges for operators. */
import type { Backlog, Broker, BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Result from "effect/Result"
import { textsIn } from "../answer.ts"
import * as Names from "../names.ts"
import { toBrokerError } from "../toBrokerError.ts"
import { browse, type Dependencies } from "./browse.ts"

/** Queues that are counted concurrently, each with one connection. */
const atOnce = 64

/** Messages per page of a purge. */
const pageSize = 160

const numberOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text))

/** Returns the counts of a queue. Fails with `QueueMissing`. */
const counts = ({ client, queues }: Dependencies, queue: string) =>
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

/**
 * Browses and removes until the queue is empty. `PurgeQueue` would also delete messages in flight, and is limited to
 * once per minute.
 */
const purge = ({ next, remove }: Broker.Browser): Effect.Effect<number, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    let count = 0
    for (let page = yield* next(pageSize); page.length > 0; page = yield* next(pageSize)) {
      const [failed] = yield* remove(page.map(({ delivery }) => delivery))
      if (failed !== undefined) return yield* failed.error
      count += page.length
    }
    return count
  })

/** Whether two names are the same queue. SQS resolves names without an account. A missing queue equals no other. */
const isSame = ({ queues, settings }: Dependencies, one: string, other: string) =>
  Effect.gen(function* () {
    const both = Result.all([Names.parse(one), Names.parse(other)])
    if (Result.isFailure(both)) return false
    const { account: own, region: home } = settings.address
    const [first, second] = both.success.map(({ account = own, name, region = home }) => ({ account, name, region }))
    if (first!.name !== second!.name || first!.region !== second!.region) return false
    if (first!.account === second!.account) return true
    if (first!.account !== undefined && second!.account !== undefined) return false
    const [found, wanted] = yield* Effect.all([queues.see(one), queues.see(other)])
    return found.url === wanted.url
  }).pipe(
    Effect.catchIf(
      ({ reason }) => reason === "QueueMissing",
      () => Effect.succeed(false)
    )
  )

const missing = { ready: 0, inFlight: 0, delayed: 0, isMissing: true }

/**
 * Returns the numbers that SQS reports for a queue, and why others are missing.
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
      : { backoff: "SQS does not report when hidden and delayed messages are due" }),
    ...(ready === 0 ? {} : { oldest: "only CloudWatch has it, as ApproximateAgeOfOldestMessage" }),
    consumers: "SQS has no connections, so it does not know its consumers"
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
  const open: Broker.Admin["browse"] = (options) => browse(env, options, counted(options.queue))
  return {
    counts: counted,
    backlog: ({ queue }) => Effect.map(counted(queue), backlog),
    browse: open,
    isSame: (one, other) => isSame(env, one, other),
    purge: (queue) =>
      Effect.scoped(Effect.flatMap(open({ queue, from: "ready", limit: Number.POSITIVE_INFINITY }), purge))
  }
}
