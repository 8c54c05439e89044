/** Counts, peeks and purges for operators. */
import { type Broker, BrokerError, type Capabilities, type Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { nextDelivery } from "../consume/toDelivery.ts"
import type { Publisher } from "../publish/publisher.ts"
import type { Queues, StoredMessage } from "../queues.ts"

/** Messages of one page of a look. */
const page = 1000

/** A message as it is shown. Whoever looks at it must not change it. */
const shown = (message: StoredMessage): Delivery.Delivery => {
  const delivery = nextDelivery(message)
  const { body, metadata } = delivery
  return { ...delivery, body: new Uint8Array(body), metadata: structuredClone(metadata) }
}

const unsupported = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "memory",
    operation: "peek",
    queue,
    reason: "Unsupported",
    detail: "the broker cannot show messages without delivering them"
  })

/** The broker's `admin`. */
export const make = (queues: Queues, publisher: Publisher, capabilities: Capabilities.Capabilities): Broker.Admin => {
  /** The messages that are ready, the oldest first. */
  const oldest = (name: string, limit: number): Array<StoredMessage> => {
    const found: Array<StoredMessage> = []
    for (const message of queues.all.get(name)?.ready ?? []) {
      if (found.length >= limit) break
      found.push(message)
    }
    return found
  }

  /** Shows messages; a broker that cannot do so without delivering them counts that. */
  const show = (messages: ReadonlyArray<StoredMessage>): ReadonlyArray<Delivery.Delivery> => {
    const deliveries = messages.map(shown)
    if (!capabilities.peek) for (const message of messages) message.deliveries++
    return deliveries
  }

  return {
    counts: (name) =>
      Effect.sync(() => {
        const queue = queues.all.get(name)
        const [ready, delayed] = [queue?.ready.size() ?? 0, queue?.delayed.size ?? 0]
        const { counts } = capabilities
        return {
          ready: counts.ready ? ready : undefined,
          inFlight: counts.inFlight ? (queue?.held ?? 0) - ready - delayed : undefined,
          delayed: counts.delayed ? delayed : undefined,
          ...(queue === undefined ? { isMissing: true } : {})
        }
      }),
    peek: (name, limit) =>
      capabilities.peek ? Effect.sync(() => show(oldest(name, limit))) : Effect.fail(unsupported(name)),
    look: (name, limit) =>
      Effect.sync(() => {
        const found = oldest(name, limit)
        return { next: Effect.sync(() => show(found.splice(0, page))) }
      }),
    names: Effect.sync(() => [...queues.all.keys()]),
    purge: (name) =>
      Effect.sync(() => {
        const queue = queues.all.get(name)
        if (queue === undefined) return 0
        const removed = queues.purge(queue)
        publisher.admit?.(queue)
        return removed
      })
  }
}
