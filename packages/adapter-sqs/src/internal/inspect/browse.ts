/** Browses a queue: receives its messages, holds them, and removes those that it is told to. */
import { type Broker, BrokerError, type Delivery, Timers } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Client, Message } from "../client.ts"
import { arrived } from "../consume/arrival.ts"
import * as Originals from "../consume/originals.ts"
import { lost, nameOf } from "../consume/receipt.ts"
import * as Receive from "../consume/receive.ts"
import type { Sources } from "../consume/sources.ts"
import type { Queue, Queues } from "../declare/declare.ts"
import * as ReceiptCalls from "../settle/receiptCalls.ts"
import { counts } from "./counts.ts"
import * as Hold from "./hold.ts"
import * as Pages from "./pages.ts"

/**
 * Milliseconds for which held messages are hidden from others, should returning them fail. Those of a browser that lasts are
 * hidden anew three times within that time.
 */
const visibilityTimeout = 60_000

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

/** The receipt of a browsed message. */
interface Receipt {
  /** The name by which it is held. */
  readonly name: string
  readonly messageId: string
}

const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // made by us

const noDelayed = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "sqs",
    operation: "browse",
    queue,
    reason: "Unsupported",
    detail: "SQS shows no message before it is due"
  })

/** The browser of a queue that is missing. */
const nothing = (queue: string): Broker.Browser => ({
  next: () => Effect.succeed([]),
  remove: (deliveries) => {
    const error = lost({ operation: "settle", queue }, "there is no such queue")
    return Effect.succeed(
      ReceiptCalls.failures(
        deliveries,
        deliveries.map(() => error)
      )
    )
  },
  identify: (delivery) => nameOf(receiptOf(delivery)),
  browsed: () => ({ isWhole: true, hidden: 0 })
})

const byAge = (a: Delivery.Delivery, b: Delivery.Delivery): number =>
  a.metadata.firstPublished - b.metadata.firstPublished

/** Opens a browser. SQS counts its receives. Of a FIFO group, SQS shows what one receive brings until some of that is removed. */
export const browse = (
  env: Dependencies,
  { from, limit, queue }: Broker.BrowseOptions
): Asked<Broker.Browser, Scope.Scope> => {
  if (from === "delayed") return Effect.fail(noDelayed(queue))
  return Effect.matchEffect(env.queues.see(queue), {
    onSuccess: (found) => opened(env, queue, limit, found),
    onFailure: (error) => (error.reason === "QueueMissing" ? Effect.succeed(nothing(queue)) : Effect.fail(error))
  })
}

const opened = (
  env: Dependencies,
  queue: string,
  limit: number,
  { fifo, url }: Queue
): Asked<Broker.Browser, Scope.Scope> =>
  Effect.gen(function* () {
    const { client, fork, sources } = env
    const { now } = yield* Timers.make
    const calls = ReceiptCalls.make({ client, queue, url: () => url, fork })
    const hold = Hold.make({ queue, fifo, calls, visibilityTimeout, now })
    const receive = (waitTime: number) =>
      Receive.make({
        client,
        queue,
        fifo,
        url: () => url,
        settings: { waitTime, visibilityTimeout },
        elapsed: now,
        learn: (messages) => (sources.knows(messages) ? undefined : Effect.runPromise(sources.learn(messages)))
      })
    const toDelivery = (message: Message, name: string): Delivery.Delivery => {
      const { Attributes, MessageAttributes, MessageId: messageId = "" } = message
      const context = { uncounted: 0, before: sources.before(message).count, now: env.now(), queue }
      const receipt: Receipt = { name, messageId }
      const delivery = arrived(message, context, fifo ? Attributes?.MessageGroupId : undefined, receipt)
      Originals.note(delivery, MessageAttributes)
      return delivery
    }
    const countReady = Effect.orElseSucceed(
      Effect.map(counts(env, queue), ({ ready }) => ready),
      () => undefined
    )
    const [probe, poll] = [receive(0), receive(Pages.waitTime)]
    const pages = Pages.make({
      fifo,
      limit,
      visibilityTimeout,
      probe,
      receive: poll,
      hold,
      countReady,
      toDelivery,
      fork,
      now
    })
    yield* Effect.addFinalizer(() => pages.close)
    yield* Effect.forkScoped(
      Effect.forever(Effect.andThen(Effect.sleep(Duration.millis(visibilityTimeout / 3)), hold.extend))
    )
    return {
      next: (count) =>
        Effect.map(pages.next(count), (page) =>
          // Within its group, a FIFO queue has an order, which need not be that of ages.
          (fifo ? page : page.toSorted(byAge)).map((delivery) => ({ delivery, due: undefined }))
        ),
      remove: (deliveries) =>
        Effect.map(hold.remove(deliveries.map((delivery) => receiptOf(delivery).name)), (results) =>
          ReceiptCalls.failures(deliveries, results)
        ),
      identify: (delivery) => nameOf(receiptOf(delivery)),
      browsed: pages.browsed
    }
  })
