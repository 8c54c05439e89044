/** What an arrival costs where the broker has leases, and may deliver again what is in flight. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, Consumer, type Delivery } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import { assert, test } from "vitest"

test("a delivery is found among thousands in flight without a look at each of them, though all have one id", async () => {
  const count = 2000
  let named = 0
  let deliver: (delivery: Delivery.Delivery) => void = () => {}
  const handled: Array<string> = []
  const program = Effect.gen(function* () {
    const broker = yield* MemoryBroker.make({ faults: { lease: { duration: 600_000, max: 43_200_000 } } })
    const watched: Broker.Service = {
      ...broker,
      subscribe: (options) => {
        deliver = options.onDelivery
        return Effect.map(broker.subscribe(options), (subscription) => ({
          ...subscription,
          identify: ({ receipt }: Delivery.Delivery) => {
            named++
            return String(receipt)
          }
        }))
      }
    }
    const start = Consumer.start("work", { concurrency: 1, drainTimeout: 0 }, ({ body }) => {
      handled.push(String(body))
      return Effect.never
    })
    yield* Effect.provideService(start, Broker.Broker, watched)
    const arrive = (name: number) =>
      deliver({
        body: Buffer.from(`"${name}"`),
        headers: {},
        attempts: 1,
        metadata: Metadata.make("m", 0),
        receipt: name
      })
    for (let name = 0; name < count; name++) arrive(name)
    assert.isAtMost(named, 3 * count)
    // Each of them comes again, in the place of itself.
    for (let name = 0; name < count; name++) arrive(name)
    assert.isAtMost(named, 6 * count)
    yield* Effect.yieldNow
  })
  await Effect.runPromise(Effect.scoped(program).pipe(Effect.provideService(References.MinimumLogLevel, "None")))
  assert.isAtMost(new Set(handled).size, 1)
})
