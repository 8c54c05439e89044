/** Browsers. Each has a consumer without credit, which holds what the browser has shown. */
import {
  Bag,
  Broker,
  BrokerError,
  type Capabilities,
  type Delivery,
  RetryPolicy,
  type Timers
} from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Dispatch } from "../consume/dispatch.ts"
import { deliveryOf, identify, nextDelivery } from "../consume/toDelivery.ts"
import type { Publisher } from "../publish/publisher.ts"
import { type Consumer, type Queues, Receipt, type StoredMessage } from "../queues.ts"
import { receiptOf, type Settle } from "../settle/settle.ts"

/** The parts of the broker that browsers use. */
export interface Dependencies {
  readonly queues: Queues
  readonly dispatch: Dispatch
  readonly settle: Settle
  readonly publisher: Publisher
  readonly capabilities: Capabilities.Capabilities
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
}

/** Where the messages of a browser come from. */
interface Source {
  /** Up to `count` further messages, of which at most `limit` are held. */
  readonly take: (consumer: Consumer, count: number) => ReadonlyArray<Broker.Delayed>
  readonly remove: (
    consumer: Consumer,
    deliveries: ReadonlyArray<Delivery.Delivery>
  ) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>
  /** Returns all messages that are held. */
  readonly close: (consumer: Consumer) => void
}

/** A copy of a stored message, because operators may write into what they are shown. */
const shown = (delivery: Delivery.Delivery): Delivery.Delivery => ({
  ...delivery,
  body: new Uint8Array(delivery.body),
  metadata: structuredClone(delivery.metadata)
})

const ready = ({ capabilities, dispatch, settle }: Dependencies, limit: number): Source => ({
  take: (consumer, count) => {
    const page: Array<Broker.Delayed> = []
    while (page.length < count && consumer.receipts.size() < limit) {
      const receipt = dispatch.take(consumer)
      if (receipt === undefined) break
      page.push({ delivery: shown(deliveryOf(receipt)), due: undefined })
    }
    return page
  },
  remove: (consumer, deliveries) =>
    settle(consumer).settle(deliveries.map((delivery) => ({ delivery, settlement: { _tag: "Ack" } }))),
  close: (consumer) => dispatch.lose(consumer.queue, [...consumer.receipts], capabilities.uncountedBrowse ? -1 : 0)
})

/** Delayed messages stay where they are: one that is due while it is shown is delivered, and is not held any more. */
const delayed = ({ elapsed, now, publisher, queues }: Dependencies, limit: number): Source => {
  /** The delays that were shown: a message that is delayed again has another timer. */
  const seen = new WeakSet<Timers.Timer>()
  let cursor: Iterator<StoredMessage, undefined> | undefined

  const hold = (consumer: Consumer, message: StoredMessage): Broker.Delayed => {
    const receipt = new Receipt(consumer, message, 0)
    receipt.expiry = message.timer
    consumer.receipts.add(receipt)
    return { delivery: { ...shown(nextDelivery(message)), receipt }, due: now() + message.due - elapsed() }
  }

  const close = ({ receipts }: Consumer): void => {
    const page = [...receipts]
    for (const receipt of page) receipts.delete(receipt)
  }

  const remove = (consumer: Consumer, delivery: Delivery.Delivery): boolean => {
    const receipt = receiptOf(consumer, delivery)
    if (receipt === undefined) return false
    consumer.receipts.delete(receipt)
    const { expiry, message } = receipt
    if (!consumer.queue.delayed.has(message) || message.timer !== expiry) return false
    queues.removeDelayed(consumer.queue, message)
    publisher.admit?.(consumer.queue)
    return true
  }

  return {
    take: (consumer, count) => {
      close(consumer)
      const page: Array<Broker.Delayed> = []
      cursor ??= consumer.queue.delayed.values()
      while (page.length < Math.min(count, limit)) {
        const { value } = cursor.next()
        if (value === undefined) {
          cursor = undefined
          break
        }
        if (value.timer === undefined || seen.has(value.timer)) continue
        seen.add(value.timer)
        page.push(hold(consumer, value))
      }
      return page
    },
    remove: (consumer, deliveries) => Effect.sync(() => deliveries.filter((each) => !remove(consumer, each)).map(gone)),
    close
  }
}

const failure = (
  operation: string,
  reason: BrokerError.Reason,
  detail: string,
  queue?: string
): BrokerError.BrokerError => new BrokerError.BrokerError({ broker: "memory", operation, queue, reason, detail })

const gone = (delivery: Delivery.Delivery): Broker.SettleFailure => ({
  delivery,
  error: failure("remove", "LeaseLost", "the browser does not hold the message"),
  fate: "gone"
})

const cut = "the connection was lost: what the browser held went back to the queue"

/** Makes a browser, and what ends it. */
const make = (env: Dependencies, { from, limit, queue: name, retry }: Broker.BrowseOptions) => {
  const source = (from === "ready" ? ready : delayed)(env, limit)
  let consumer: Consumer | undefined
  let isCut = false
  let isWhole = true
  // Of a settlement that is made to fail with `LeaseLost`, one message goes back: it is shown again.
  const onReconnect: Broker.SubscribeOptions["onReconnect"] = (isGone) => {
    isCut ||= isGone === undefined
  }

  /** Undefined while the queue is missing. */
  const consume = (): Consumer | undefined => {
    const queue = env.queues.all.get(name)
    if (consumer !== undefined || queue === undefined) return consumer
    const options = {
      queue: name,
      retry: retry ?? RetryPolicy.make(),
      deadLetterQueues: [],
      onDelivery: () => undefined,
      onReconnect
    }
    consumer = { options, queue, receipts: Bag.make(), credit: 0, isReady: false }
    if (from === "ready") queue.consumers.add(consumer)
    return consumer
  }

  const take = (count: number): ReadonlyArray<Broker.Delayed> => {
    const opened = consume()
    if (opened === undefined) return []
    const page = source.take(opened, count)
    isWhole = from === "delayed" || opened.queue.ready.size() === 0
    return page
  }

  const browser: Broker.Browser = {
    next: (count) =>
      Effect.suspend(() => {
        if (!isCut) return Effect.succeed(take(count))
        isCut = false
        return Effect.fail(failure("browse", "ConnectionLost", cut, name))
      }),
    remove: (deliveries) =>
      Effect.suspend(() =>
        consumer === undefined ? Effect.succeed(deliveries.map(gone)) : source.remove(consumer, deliveries)
      ),
    identify,
    browsed: () => ({ isWhole, hidden: 0 })
  }
  const close = (): void => {
    consumer?.queue.consumers.delete(consumer)
    if (consumer !== undefined) source.close(consumer)
  }
  return { browser, close }
}

/** Opens a browser, which lasts as long as its scope. */
export const open = (
  env: Dependencies,
  options: Broker.BrowseOptions
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> => {
  if (options.from === "delayed" && env.capabilities.delayedMessages !== true) {
    const detail = "the broker cannot show messages that wait for their delay"
    return Effect.fail(failure("browse", "Unsupported", detail, options.queue))
  }
  return Effect.acquireRelease(
    Effect.sync(() => make(env, options)),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ browser }) => browser))
}
