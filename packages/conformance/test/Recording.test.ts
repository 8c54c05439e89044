import { assert, it } from "@effect/vitest"
import { BrokerError, type Delivery, RetryPolicy } from "@requeue/core"
import { Metadata, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Recording from "../src/Recording.ts"
import { broker } from "./fake.ts"

const delivery = (id: string): Delivery.Delivery => ({
  body: new Uint8Array(0),
  headers: {},
  attempts: 1,
  metadata: Metadata.make(id, 1),
  receipt: id
})

it.effect("writes down what passes, in order, and keeps from the broker what it makes fail", () =>
  Effect.gen(function* () {
    const reached: Array<string> = []
    const {
      broker: recorded,
      faults,
      log
    } = yield* Recording.make({
      ...broker,
      subscribe: (options) =>
        Effect.sync(() => {
          options.onDelivery(delivery("a"))
          return {
            credit: (limit) => void reached.push(`credit ${limit}`),
            settle: (requests) =>
              Effect.sync(() => {
                for (const { settlement } of requests) reached.push(settlement._tag)
                return []
              }),
            extend: (deliveries) =>
              Effect.sync(() => {
                for (const { metadata } of deliveries) reached.push(`extend ${metadata.id}`)
                return []
              }),
            identify: () => undefined
          }
        })
    })
    const subscription = yield* recorded.subscribe({
      queue: "q",
      retry: RetryPolicy.make(),
      deadLetterQueues: [],
      onDelivery: () => {},
      onReconnect: () => {}
    })
    subscription.credit(3)
    const error = new BrokerError.BrokerError({
      broker: "fake",
      operation: "settle",
      reason: "Throttled",
      detail: "busy"
    })
    faults.settle = ({ settlement }) => (settlement._tag === "Retry" ? { error, fate: "transient" } : undefined)
    const [a, b] = [delivery("a"), delivery("b")]
    const failures = yield* subscription.settle([
      { delivery: a, settlement: Settlement.Retry(5) },
      { delivery: b, settlement: Settlement.Ack }
    ])
    assert.deepStrictEqual(failures, [{ delivery: a, error, fate: "transient" }])
    assert.deepStrictEqual(reached, ["credit 3", "Ack"])
    faults.extend = ({ delivery: { metadata } }) => (metadata.id === "a" ? { error, fate: "lost" } : undefined)
    assert.deepStrictEqual(yield* subscription.extend([a, b]), [{ delivery: a, error, fate: "lost" }])
    assert.deepStrictEqual(reached, ["credit 3", "Ack", "extend b"])
    assert.deepStrictEqual(
      log.map((entry) => ("settlement" in entry ? `${entry._tag} ${entry.settlement._tag}` : entry._tag)),
      ["Delivered", "Credit", "Settling Retry", "Settling Ack", "Settled Retry", "Settled Ack"]
    )
  })
)
