/** Health tells the truth of a consumer that does not move though it has work. */
import { Workload } from "@requeue/conformance"
import { Broker, ConsumerBackoff, Health } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { queue, run } from "./faultyBroker.ts"

type Change = (subscription: Broker.Subscription) => Partial<Broker.Subscription>

/** Changes every subscription. */
const wrapped =
  (change: Change) =>
  (broker: Broker.Service): Broker.Service => ({
    ...broker,
    subscribe: (options) =>
      Effect.map(broker.subscribe(options), (subscription) => ({ ...subscription, ...change(subscription) }))
  })

const ids = Workload.ids(10)

const lease = { duration: 30_000, max: 43_200_000 }

describe("a consumer is stalled, and not live", () => {
  test.each<readonly [string, Change]>([
    ["settle never answers", () => ({ settle: () => Effect.never })],
    [
      "settle answers all but one message",
      (subscription) => ({
        settle: (requests) =>
          requests.some(({ delivery }) => delivery.metadata.id === "m3") ? Effect.never : subscription.settle(requests)
      })
    ]
  ])("when the adapter's %s", (_, change) =>
    run(
      ids,
      (world) =>
        Effect.gen(function* () {
          const consumer = yield* world.start(queue, { concurrency: 2 }, () => Effect.sleep(10))
          yield* Effect.sleep("5 minutes")
          const health = yield* Health.check([consumer])
          assert.strictEqual(health.consumers[0]?.state, "stalled")
          assert.isAtLeast(health.consumers[0]!.inProgress, 1)
          assert.deepStrictEqual([Health.isReady(health), Health.isLive(health)], [false, false])
          yield* world.balance
        }),
      { wrap: wrapped(change) }
    )
  )

  test("when the adapter's extend never answers", () =>
    run(
      ids,
      (world) =>
        Effect.gen(function* () {
          const consumer = yield* world.start(queue, { handlerTimeout: "1 minute" }, () => Effect.sleep("15 seconds"))
          yield* Effect.sleep("10 minutes")
          assert.strictEqual(consumer.health().state, "stalled")
          yield* world.balance
        }),
      { options: { faults: { lease } }, wrap: wrapped(() => ({ extend: () => Effect.never })) }
    ))

  test("when its handler never ends and cannot be interrupted", () =>
    run(ids, (world) =>
      Effect.gen(function* () {
        const forEver = Effect.uninterruptible(Effect.never)
        const consumer = yield* world.start(queue, { handlerTimeout: "1 minute" }, () => forEver)
        yield* Effect.sleep("90 seconds")
        assert.strictEqual(consumer.health().state, "running")
        yield* Effect.sleep("90 seconds")
        assert.strictEqual(consumer.health().state, "stalled")
      })
    ))
})

describe("a consumer is not stalled", () => {
  test("while handlers work within their time", () =>
    run(ids, (world) =>
      Effect.gen(function* () {
        const consumer = yield* world.start(queue, { concurrency: 2 }, () => Effect.sleep("9 minutes"))
        for (let minute = 0; minute < 45; minute++) {
          assert.strictEqual(consumer.health().state, "running")
          yield* Effect.sleep("1 minute")
        }
        yield* world.untilEnded()
        yield* Effect.sleep("1 hour")
        assert.strictEqual(consumer.health().state, "running")
        yield* world.balance
      })
    ))

  test("while it has nothing: an adapter whose credit does nothing shows in the counts", () =>
    run(
      ids,
      (world) =>
        Effect.gen(function* () {
          const consumer = yield* world.start(queue, {}, () => {})
          yield* Effect.sleep("1 hour")
          const { consumers } = yield* Health.check([consumer])
          const { buffered, counts, inProgress, lastDelivery } = consumers[0]!
          assert.deepStrictEqual([buffered, inProgress, lastDelivery], [0, 0, undefined])
          assert.deepStrictEqual(counts, { ready: 10, inFlight: 0, delayed: 0 })
        }),
      { wrap: wrapped(() => ({ credit: () => {} })) }
    ))

  test("while it probes: an adapter whose credit does nothing after a pause leaves it probing", () => {
    let isPaused = false
    const credit =
      (subscription: Broker.Subscription) =>
      (limit: number): void => {
        isPaused ||= limit === 0
        if (!isPaused) subscription.credit(limit)
        else if (limit === 0) subscription.credit(0)
      }
    return run(
      ids,
      (world) =>
        Effect.gen(function* () {
          const consumerBackoff = ConsumerBackoff.nsq()
          const consumer = yield* world.start(queue, { consumerBackoff, prefetch: 0 }, () =>
            Effect.fail(new Error("down"))
          )
          yield* Effect.sleep("1 hour")
          assert.strictEqual(consumer.health().state, "probing")
          yield* world.balance
        }),
      { wrap: wrapped((subscription) => ({ credit: credit(subscription) })) }
    )
  })
})
