/** Browsers. Ready messages that were shown are in flight to the browser; delayed ones stay in the queue. */
import { Bag, type Broker, type BrokerError, type Capabilities, Settlement, type Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Dispatch } from "../consume/dispatch.ts"
import { identify, nextDelivery } from "../consume/toDelivery.ts"
import type { Publisher } from "../publish/publisher.ts"
import { type Consumer, type Queues, Receipt, type StoredMessage } from "../queues.ts"
import { failure, gone, receiptOf, type Settle } from "../settle/settle.ts"

/** The parts of the broker that operators use. */
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

/** Yields each delayed message of a queue once, then `undefined`. A message that is delayed again has a new timer. */
function* unseen(queues: Queues, name: string): Generator<StoredMessage | undefined, never> {
  const seen = new WeakSet<Timers.Timer>()
  while (true) {
    for (const message of queues.all.get(name)?.delayed ?? []) {
      if (seen.has(message.timer!)) continue
      seen.add(message.timer!)
      yield message
    }
    yield undefined
  }
}

/** Returns a copy of a message, because operators may change it. */
const show = (
  consumer: Consumer,
  message: StoredMessage,
  due: number | undefined,
  blocks: number | undefined
): Broker.BrowsedMessage => {
  const receipt = new Receipt(consumer, message, 0)
  receipt.expiry = message.timer
  consumer.receipts.add(receipt)
  const { body, metadata, place, ...rest } = nextDelivery(message)
  const copy = { ...rest, body: new Uint8Array(body), metadata: structuredClone(metadata), receipt }
  return { delivery: place === undefined ? copy : { ...copy, place: { ...place, blocks } }, due }
}

/** Opens a browser that lasts as long as its scope. */
export const open = (
  { capabilities, dispatch, elapsed, now, publisher, queues, settle }: Dependencies,
  { from, limit, queue: name }: Broker.BrowseOptions
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> => {
  const isReady = from === "ready"
  if (!isReady && capabilities.delayedMessages !== true) {
    const detail = "the broker cannot show messages that wait for their delay"
    return Effect.fail(failure("browse", name, "Unsupported", detail))
  }
  const delayed = unseen(queues, name)
  /** A consumer without credit, which holds all shown messages, or a page of delayed ones. */
  let consumer: Consumer | undefined
  let [isCut, isWhole] = [false, true]
  const options: Consumer["options"] = {
    onDelivery: () => undefined,
    // The fault `failSettle` loses only one message, which is shown again.
    onReconnect: (isGone) => (isCut ||= isGone === undefined)
  }

  const next = (count: number): ReadonlyArray<Broker.BrowsedMessage> => {
    const queue = queues.all.get(name)
    if (queue === undefined) return []
    if (consumer === undefined || !isReady) {
      consumer = { options, queue, receipts: Bag.make(), credit: 0, isReady: false }
      if (isReady) queue.consumers.add(consumer)
    }
    const page: Array<Broker.BrowsedMessage> = []
    while (page.length < count && consumer.receipts.size() < limit) {
      const message = isReady ? queue.ready.take() : delayed.next().value
      if (message === undefined) break
      const due = isReady ? undefined : now() + message.due - elapsed()
      page.push(show(consumer, message, due, queues.blocks(message)))
      if (isReady) message.deliveries++
    }
    isWhole = !isReady || queue.ready.size() === 0
    return page
  }

  /** A message that is due by now was delivered, and is no longer held. */
  const removeDelayed = (delivery: Broker.BrowsedMessage["delivery"]): ReadonlyArray<Broker.SettleFailure> => {
    const receipt = consumer && receiptOf(consumer, delivery)
    if (receipt?.expiry?.run === undefined) return [gone("remove", name, delivery)]
    const { queue, receipts } = receipt.consumer
    receipts.delete(receipt)
    queues.removeDelayed(queue, receipt.message)
    publisher.admit?.(queue)
    return []
  }

  const browser: Broker.Browser = {
    next: (count) =>
      Effect.suspend(() => {
        if (!isCut) return Effect.succeed(next(count))
        isCut = false
        return Effect.fail(failure("browse", name, "ConnectionLost", "the browser's messages are in the queue again"))
      }),
    remove: (deliveries) =>
      Effect.suspend(() =>
        consumer === undefined || !isReady
          ? Effect.succeed(deliveries.flatMap(removeDelayed))
          : settle(consumer).settle(deliveries.map((delivery) => ({ delivery, settlement: Settlement.Ack })))
      ),
    identify,
    browsed: () => ({ isWhole, hidden: 0 })
  }
  const close = Effect.sync(() => {
    if (consumer?.queue.consumers.delete(consumer) !== true) return
    dispatch.lose(consumer.queue, [...consumer.receipts], capabilities.uncountedBrowse ? -1 : 0)
  })
  return Effect.as(
    Effect.addFinalizer(() => close),
    browser
  )
}
