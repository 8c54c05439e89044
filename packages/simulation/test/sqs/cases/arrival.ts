/** The cost of an arrival, counted and not timed: how often what is in flight is looked at. */
import { type Case, Check, Harness, Wait, Workload } from "@requeue/conformance"
import { Broker, Consumer } from "@requeue/core"
import type { Delivery } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

const count = 400

/** Counts reads of the receipts of deliveries. */
const counting = (broker: Broker.Service) => {
  let reads = 0
  const watch = (delivery: Delivery.Delivery): void => {
    const { receipt } = delivery
    Object.defineProperty(delivery, "receipt", {
      get: () => {
        reads++
        return receipt
      }
    })
  }
  const watched: Broker.Service = {
    ...broker,
    subscribe: (options) =>
      broker.subscribe({
        ...options,
        onDelivery: (delivery) => {
          watch(delivery)
          options.onDelivery(delivery)
        }
      })
  }
  return { watched, reads: () => reads }
}

export const cases: ReadonlyArray<Case.Case> = [
  {
    name: "an arrival costs the same, however much is in flight",
    group: "arrival",
    run: Effect.gen(function* () {
      const { uniqueQueue } = yield* Harness.Harness
      const broker = yield* Broker.Broker
      const queue = yield* uniqueQueue("arrival")
      const now = yield* Clock.currentTimeMillis
      const ids = Array.from({ length: count }, (_, index) => `m${index}`)
      yield* broker.publish(ids.map((id) => Workload.outgoing(queue, id, { now })))
      const { reads, watched } = counting(broker)
      let runs = 0
      yield* Effect.provideService(
        Consumer.start(queue, { concurrency: count }, () => {
          runs++
          return Effect.never
        }),
        Broker.Broker,
        watched
      )
      yield* Wait.until("all runs", () => runs === count)
      // Leases are extended meanwhile, but not once for each arrival.
      Check.isTrue("reads of receipts", reads() < 20 * count, reads())
    })
  }
]
