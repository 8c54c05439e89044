/** Counts, peeks and purges for operators. */
import type { Backlog, Broker, BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { textsIn } from "../answer.ts"
import type { Client, Message } from "../client.ts"
import { messagesIn } from "../consume/received.ts"
import type { Sources } from "../consume/sources.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import type { Queues } from "../declare/declare.ts"
import * as Limits from "../limits.ts"
import * as ReceiptCalls from "../settle/receiptCalls.ts"
import { toBrokerError } from "../toBrokerError.ts"

/**
 * Seconds for which messages that are looked at are hidden from others, should giving them back fail. Those of a look that
 * lasts are hidden anew three times within that time.
 */
const lookVisibility = 60

/** Receives that may be under way, and the bytes that they should bring at most. */
const parallel = 16
const pageBytes = 4 * 2 ** 20

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

type Asked<A, R = never> = Effect.Effect<A, BrokerError.BrokerError, R>

const ask = <A>(queues: Queues, operation: string, queue: string, run: (url: string) => Promise<A>): Asked<A> =>
  Effect.flatMap(queues.see(queue), ({ url }) =>
    Effect.tryPromise({ try: () => run(url), catch: (cause) => toBrokerError(cause, { operation, queue }) })
  )

/** A queue that is missing is taken for an empty one, and is not made by being looked at. */
const orEmpty = <A, B, R>(effect: Asked<A, R>, empty: B): Asked<A | B, R> =>
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
  Effect.map(queues.see(queue), ({ fifo, url }) => ({
    fifo,
    calls: ReceiptCalls.make({ client, queue, url: () => url, fork }),
    receive: (count: number) =>
      Effect.map(
        ask(queues, operation, queue, () =>
          client.receiveMessage({
            QueueUrl: url,
            MaxNumberOfMessages: Math.min(Limits.batch, count),
            VisibilityTimeout: lookVisibility,
            WaitTimeSeconds: waitTime,
            MessageSystemAttributeNames: ["All"],
            MessageAttributeNames: ["All"]
          })
        ),
        messagesIn
      )
  }))

/**
 * Receives until nothing more comes, and gives all of it back at the end; SQS counts these receives. Of a FIFO group, SQS
 * shows only the messages that one receive can bring.
 */
const look = (env: Dependencies, queue: string, limit: number): Asked<Broker.Look, Scope.Scope> =>
  Effect.gen(function* () {
    const { calls, fifo, receive } = yield* open(env, "peek", queue)
    /** All that is held, by receipt handles. */
    const held: Array<string> = []
    let [bytes, isOver] = [0, false]
    const hide = (seconds: number) =>
      Effect.suspend(() => calls.changeVisibility(held.map((handle) => ({ handle, seconds }))))
    yield* Effect.addFinalizer(() => hide(0))
    yield* Effect.forkScoped(
      Effect.forever(Effect.andThen(Effect.sleep(Duration.seconds(lookVisibility / 3)), hide(lookVisibility)))
    )

    /** Held from the moment on at which it has come, whatever becomes of the other receives. */
    const receiveSome = (count: number) =>
      Effect.tap(receive(count), (messages) =>
        Effect.sync(() => {
          for (const { Body = "", ReceiptHandle = "" } of messages) {
            held.push(ReceiptHandle)
            bytes += Body.length
          }
        })
      )

    const next = Effect.gen(function* () {
      const wanted = limit - held.length
      if (isOver || wanted <= 0) return []
      const fitting = Math.ceil((pageBytes * held.length) / (bytes + 1) / Limits.batch)
      const most = held.length === 0 ? 1 : Math.max(1, Math.min(parallel, fitting))
      const counts = Array.from({ length: Math.min(most, Math.ceil(wanted / Limits.batch)) }, (_, at) =>
        Math.min(Limits.batch, wanted - at * Limits.batch)
      )
      const page = (yield* Effect.forEach(counts, receiveSome, { concurrency: "unbounded" })).flat()
      isOver = page.length === 0
      yield* env.sources.learn(page)
      return page.map((message) => shown(message, fifo, env)).toSorted(byAge)
    })
    return { next }
  })

const byAge = (a: Delivery.Delivery, b: Delivery.Delivery): number =>
  a.metadata.firstPublished - b.metadata.firstPublished

/** A message as it is shown: nobody can settle it. */
const shown = (message: Message, fifo: boolean, { now, sources }: Dependencies): Delivery.Delivery => ({
  ...toDelivery(message, { uncounted: 0, before: sources.before(message).count, now: now() }),
  group: fifo ? message.Attributes?.MessageGroupId : undefined,
  receipt: undefined
})

const peek = (env: Dependencies, queue: string, limit: number): Asked<ReadonlyArray<Delivery.Delivery>> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { next } = yield* look(env, queue, limit)
      const seen: Array<Delivery.Delivery> = []
      for (let page = yield* next; page.length > 0; page = yield* next) seen.push(...page)
      return seen.toSorted(byAge)
    })
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

const none = { ready: 0, inFlight: 0, delayed: 0 }

/**
 * The numbers of a queue as SQS tells them, and why not the others.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
 */
const backlog = ({ delayed, inFlight, ready }: Broker.Counts): Backlog.Backlog => ({
  ready,
  inFlight,
  delayed,
  backoff: delayed === 0 && inFlight === 0 ? [] : undefined,
  undelivered: 0,
  oldest: ready === 0 ? 0 : undefined,
  consumers: undefined,
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
export const make = (env: Dependencies): Broker.Admin => ({
  counts: (queue) => orEmpty(counts(env, queue), { ...none, isMissing: true }),
  backlog: ({ queue }) => Effect.map(orEmpty(counts(env, queue), none), backlog),
  peek: (queue, limit) => orEmpty(peek(env, queue, limit), []),
  look: (queue, limit) => orEmpty(look(env, queue, limit), { next: Effect.succeed([]) }),
  purge: (queue) => orEmpty(purge(env, queue), 0)
})
