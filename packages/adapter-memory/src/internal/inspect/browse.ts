/** Browsers. What one has shown of the ready messages is in flight to it; delayed messages stay where they are. */
import { Bag, type Broker, type BrokerError, type Delivery, Settlement, type Timers } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { deliveryOf, identify, nameOf, nextDelivery } from "../consume/toDelivery.ts"
import { type Consumer, Receipt, type StoredMessage } from "../queues.ts"
import { failure, gone } from "../settle/settle.ts"
import type { Dependencies } from "./admin.ts"

/** A copy, because operators may write into what they are shown. */
const shown = (delivery: Delivery.Delivery, due?: number): Broker.Delayed => ({
  delivery: { ...delivery, body: new Uint8Array(delivery.body), metadata: structuredClone(delivery.metadata) },
  due
})

const ready = (
  { capabilities, dispatch, queues, settle }: Dependencies,
  { limit, queue: name }: Broker.BrowseOptions
): Effect.Effect<Broker.Browser, never, Scope.Scope> => {
  // Without credit. It is made when there is a queue.
  let consumer: Consumer | undefined
  let [isCut, isWhole] = [false, true]
  const options: Consumer["options"] = {
    onDelivery: () => undefined,
    // A settlement that is made to fail loses one message, which is shown again.
    onReconnect: (isGone) => (isCut ||= isGone === undefined)
  }

  const next = (count: number): ReadonlyArray<Broker.Delayed> => {
    const queue = queues.all.get(name)
    if (queue === undefined) return []
    consumer ??= { options, queue, receipts: Bag.make<Receipt>(), credit: 0, isReady: false }
    queue.consumers.add(consumer)
    const { receipts } = consumer
    const page: Array<Broker.Delayed> = []
    while (page.length < count && receipts.size() < limit) {
      const message = queue.ready.take()
      if (message === undefined) break
      message.deliveries++
      const receipt = new Receipt(consumer, message, 0)
      receipts.add(receipt)
      page.push(shown(deliveryOf(receipt)))
    }
    isWhole = queue.ready.size() === 0
    return page
  }

  const browser: Broker.Browser = {
    next: (count) =>
      Effect.suspend(() => {
        if (!isCut) return Effect.succeed(next(count))
        isCut = false
        return Effect.fail(failure("browse", name, "ConnectionLost", "what the browser held is in the queue again"))
      }),
    remove: (deliveries) =>
      Effect.suspend(() =>
        consumer === undefined
          ? Effect.succeed(deliveries.map((delivery) => gone("remove", name, delivery)))
          : settle(consumer).settle(deliveries.map((delivery) => ({ delivery, settlement: Settlement.Ack })))
      ),
    identify,
    browsed: () => ({ isWhole, hidden: 0 })
  }
  const close = Effect.sync(() => {
    if (consumer === undefined) return
    consumer.queue.consumers.delete(consumer)
    dispatch.lose(consumer.queue, [...consumer.receipts], capabilities.uncountedBrowse ? -1 : 0)
  })
  return Effect.as(
    Effect.addFinalizer(() => close),
    browser
  )
}

/** A message that is due is delivered, and is not held any more. */
const delayed = (
  { elapsed, now, publisher, queues }: Dependencies,
  { limit, queue: name }: Broker.BrowseOptions
): Broker.Browser => {
  /** The messages that were shown, by their timers: one that is delayed again has another. */
  const seen = new WeakMap<Timers.Timer, StoredMessage>()
  let page = new Set<Timers.Timer>()

  function* unseen(): Generator<StoredMessage | undefined, never> {
    while (true) {
      for (const message of queues.all.get(name)?.delayed ?? []) if (!seen.has(message.timer!)) yield message
      yield undefined
    }
  }
  const messages = unseen()

  const next = (count: number): ReadonlyArray<Broker.Delayed> => {
    page = new Set()
    const found: Array<Broker.Delayed> = []
    while (found.length < Math.min(count, limit)) {
      const message = messages.next().value
      if (message === undefined) break
      const receipt = message.timer!
      seen.set(receipt, message)
      page.add(receipt)
      found.push(shown({ ...nextDelivery(message), receipt }, now() + message.due - elapsed()))
    }
    return found
  }

  const timerOf = ({ receipt }: Delivery.Delivery) => receipt as Timers.Timer // `next` has put it there.

  const remove = (delivery: Delivery.Delivery): boolean => {
    const timer = timerOf(delivery)
    if (!page.delete(timer) || timer.run === undefined) return false
    const queue = queues.get(name)
    queues.removeDelayed(queue, seen.get(timer)!)
    publisher.admit?.(queue)
    return true
  }

  return {
    next: (count) => Effect.sync(() => next(count)),
    remove: (deliveries) =>
      Effect.sync(() => deliveries.filter((each) => !remove(each)).map((each) => gone("remove", name, each))),
    identify: (delivery) => {
      const message = seen.get(timerOf(delivery))
      return message && nameOf(message)
    },
    browsed: () => ({ isWhole: true, hidden: 0 })
  }
}

/** Opens a browser, which lasts as long as its scope. */
export const open = (
  env: Dependencies,
  options: Broker.BrowseOptions
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> => {
  if (options.from === "ready") return Effect.suspend(() => ready(env, options))
  if (env.capabilities.delayedMessages === true) return Effect.sync(() => delayed(env, options))
  const detail = "the broker cannot show messages that wait for their delay"
  return Effect.fail(failure("browse", options.queue, "Unsupported", detail))
}
