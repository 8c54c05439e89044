/** The operators' view of the queues. */
import { type Broker, BrokerError, type Capabilities, type Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { view } from "../consume/dispatch.ts"
import type { Publish } from "../publish/publisher.ts"
import type { Store } from "../queues.ts"

export const make = (store: Store, publish: Publish, capabilities: Capabilities.Capabilities): Broker.Admin => ({
  counts: (name) =>
    Effect.sync(() => {
      const { delayed, held, ready } = store.queue(name)
      const told = capabilities.counts
      return {
        ready: told.ready ? ready.size() : undefined,
        inFlight: told.inFlight ? held - ready.size() - delayed.size : undefined,
        delayed: told.delayed ? delayed.size : undefined
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
      for (const stored of store.queue(name).ready) {
        if (seen.length >= limit) break
        seen.push(view(stored, stored.deliveries + 1))
      }
      return Effect.succeed(seen)
    }),
  purge: (name) =>
    Effect.sync(() => {
      const queue = store.queue(name)
      const removed = store.purge(queue)
      publish.admit(queue)
      return removed
    })
})
