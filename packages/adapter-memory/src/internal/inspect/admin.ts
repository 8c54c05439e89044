/** Counts, peeks and purges for operators. */
import { type Broker, BrokerError, type Capabilities, type Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { nextDelivery } from "../consume/toDelivery.ts"
import type { Publisher } from "../publish/publisher.ts"
import type { Queues } from "../queues.ts"

/** The broker's `admin`. */
export const make = (queues: Queues, publisher: Publisher, capabilities: Capabilities.Capabilities): Broker.Admin => ({
  counts: (name) =>
    Effect.sync(() => {
      const { delayed, held, ready } = queues.get(name)
      const { counts } = capabilities
      return {
        ready: counts.ready ? ready.size() : undefined,
        inFlight: counts.inFlight ? held - ready.size() - delayed.size : undefined,
        delayed: counts.delayed ? delayed.size : undefined
      }
    }),
  peek: (name, limit) =>
    Effect.suspend(() => {
      if (!capabilities.peek) {
        const detail = "the broker cannot show messages without delivering them"
        return Effect.fail(
          new BrokerError.BrokerError({
            broker: "memory",
            operation: "peek",
            queue: name,
            reason: "Unsupported",
            detail
          })
        )
      }
      const seen: Array<Delivery.Delivery> = []
      for (const message of queues.get(name).ready) {
        if (seen.length >= limit) break
        const delivery = nextDelivery(message)
        const { body, metadata } = delivery
        // Whoever looks at it must not change the message.
        seen.push({ ...delivery, body: new Uint8Array(body), metadata: structuredClone(metadata) })
      }
      return Effect.succeed(seen)
    }),
  purge: (name) =>
    Effect.sync(() => {
      const queue = queues.get(name)
      const removed = queues.purge(queue)
      publisher.admit?.(queue)
      return removed
    })
})
