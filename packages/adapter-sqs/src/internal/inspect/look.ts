/** Receives the messages of a queue, and looks at them. */
import type { Broker, BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { Client, Message } from "../client.ts"
import { arrived } from "../consume/arrival.ts"
import { messagesIn } from "../consume/received.ts"
import type { Sources } from "../consume/sources.ts"
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

/** Milliseconds for which the end of a look waits for calls that are under way: a receive has waited by then. */
const lastGrace = 1000 * waitTime + 2000

export interface Dependencies {
  readonly client: Client
  readonly queues: Queues
  readonly sources: Sources
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** An answer of SQS. */
export type Asked<A, R = never> = Effect.Effect<A, BrokerError.BrokerError, R>

/** Makes a call about a queue that exists; fails where there is none. */
export const ask = <A>(queues: Queues, operation: string, queue: string, run: (url: string) => Promise<A>): Asked<A> =>
  Effect.flatMap(queues.see(queue), ({ url }) =>
    Effect.tryPromise({ try: () => run(url), catch: (cause) => toBrokerError(cause, { operation, queue }) })
  )

/** The calls of a look or a purge. */
export const open = ({ client, fork, queues }: Dependencies, operation: string, queue: string) =>
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
export const look = (env: Dependencies, queue: string, limit: number): Asked<Broker.Look, Scope.Scope> =>
  Effect.gen(function* () {
    const { calls, fifo, receive } = yield* open(env, "peek", queue)
    /** All that is held, by receipt handles. */
    const held: Array<string> = []
    /** Receives whose answers hide messages, whether or not anybody still waits for them. */
    const receives = new Set<Fiber.Fiber<unknown, unknown>>()
    let [bytes, isOver, isEnded] = [0, false, false]
    const hide = (handles: ReadonlyArray<string>, seconds: number) =>
      calls.changeVisibility(handles.map((handle) => ({ handle, seconds })))
    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        const underWay = Effect.forEach([...receives], Fiber.await, { concurrency: "unbounded", discard: true })
        // A call that hides what is held, and arrives later, would hide what was given back.
        yield* Effect.timeoutOption(Effect.andThen(underWay, calls.idle), Duration.millis(lastGrace))
        isEnded = true
        yield* hide(held, 0)
      })
    )
    yield* Effect.forkScoped(
      Effect.forever(
        Effect.andThen(
          Effect.sleep(Duration.seconds(lookVisibility / 3)),
          Effect.suspend(() => hide(held, lookVisibility))
        )
      )
    )

    /** Held from the moment on at which it has come, whatever becomes of the other receives, or of who waits for it. */
    const receiveSome = (count: number) =>
      Effect.gen(function* () {
        const taken = Effect.tap(receive(count), (messages) =>
          Effect.suspend(() => {
            const handles = messages.map(({ ReceiptHandle = "" }) => ReceiptHandle)
            if (isEnded) return hide(handles, 0)
            held.push(...handles)
            for (const { Body = "" } of messages) bytes += Body.length
            return Effect.void
          })
        )
        const fiber = yield* Effect.forkDetach(taken)
        receives.add(fiber)
        fiber.addObserver(() => receives.delete(fiber))
        return yield* Fiber.join(fiber)
      })

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
      return page.map((message) => shown(message, fifo, queue, env)).toSorted(byAge)
    })
    return { next }
  })

const byAge = (a: Delivery.Delivery, b: Delivery.Delivery): number =>
  a.metadata.firstPublished - b.metadata.firstPublished

/** A message as it is shown: nobody can settle it. */
const shown = (message: Message, fifo: boolean, queue: string, { now, sources }: Dependencies): Delivery.Delivery =>
  arrived(
    message,
    { uncounted: 0, before: sources.before(message).count, now: now(), queue },
    fifo ? message.Attributes?.MessageGroupId : undefined
  )

/** Up to `limit` waiting messages, the oldest first. */
export const peek = (env: Dependencies, queue: string, limit: number): Asked<ReadonlyArray<Delivery.Delivery>> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { next } = yield* look(env, queue, limit)
      const seen: Array<Delivery.Delivery> = []
      for (let page = yield* next; page.length > 0; page = yield* next) seen.push(...page)
      return seen.toSorted(byAge)
    })
  )
