/** Messages of which the broker refuses every settlement: they stand in quarantine, and cost the others nothing. */
import { Workload } from "@requeue/conformance"
import { Health, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { broken, queue, run, runsOf, told, type World } from "./faultyBroker.ts"

const good = Workload.ids(1000, "g")

const isPoison = (id: string): boolean => id.startsWith("p")

const refuseAll = ({ faults }: World): void => {
  faults.settle = ({ delivery: { metadata }, settlement }) =>
    isPoison(metadata.id) && settlement._tag !== "Release" ? broken("BodyTooLarge") : undefined
}

/** Starts a consumer whose handler takes 10 ms, and fails for poison. */
const consume = ({ start }: World, concurrency: number, retry = RetryPolicy.make()) =>
  start(queue, { concurrency, retry }, ({ id }) =>
    Effect.andThen(Effect.sleep(10), isPoison(id) ? Effect.fail(new Error("no")) : Effect.void)
  )

/** Milliseconds until all good messages are handled. */
const timed = (ids: ReadonlyArray<string>, concurrency: number): Promise<number> =>
  run(ids, (world) =>
    Effect.gen(function* () {
      refuseAll(world)
      const begun = world.now()
      yield* consume(world, concurrency)
      yield* world.untilEnded(good)
      return world.now() - begun
    })
  )

describe("a message of which every settlement but a give-back is refused", () => {
  test.each([1, 5, 20])("costs a thousand others nothing, at concurrency %i", async (concurrency) => {
    const alone = await timed(good, concurrency)
    const beside = await timed(["p", ...good], concurrency)
    assert.isAtMost(beside, 1.1 * alone)
  })

  test.each([
    ["its retries", RetryPolicy.make({ maxAttempts: 3 })],
    ["its dead letter", RetryPolicy.make({ maxAttempts: 1 })]
  ])("is run as often as allowed, and is still counted after six hours: %s", (_, retry) =>
    run(["p", ...good.slice(0, 10)], (world) =>
      Effect.gen(function* () {
        refuseAll(world)
        const consumer = yield* consume(world, 5, retry)
        yield* world.untilEnded(good.slice(0, 10))
        yield* Effect.sleep("6 hours")
        assert.strictEqual(consumer.health().quarantined, 1)
        assert.deepStrictEqual(told(world.books, "Quarantined"), ["p"])
        assert.isAtMost(runsOf(world.books, "p"), retry.maxAttempts)
        yield* world.balance
        world.faults.settle = undefined
        yield* world.untilEnded()
        assert.strictEqual(runsOf(world.books, "p"), retry.maxAttempts)
        assert.strictEqual(consumer.health().quarantined, 0)
        yield* world.balance
      })
    )
  )
})

describe("a message in quarantine whose connection breaks", () => {
  test("is not run again, and its dead letter is whole", () =>
    run(["p"], (world) =>
      Effect.gen(function* () {
        refuseAll(world)
        yield* consume(world, 1, RetryPolicy.make({ maxRetries: 0 }))
        yield* Effect.sleep("10 minutes")
        world.faults.settle = undefined
        yield* world.control.cut
        yield* Effect.sleep(1)
        const [letter] = (yield* world.control.snapshot(`${queue}.dlq`)).ready
        assert.strictEqual(letter?.metadata.truncation, undefined)
        assert.strictEqual(letter?.metadata.deadLetter?.error.message, "no")
        assert.strictEqual(runsOf(world.books, "p"), 1)
        yield* world.balance
      })
    ))
})

describe("200 messages of which every settlement is refused", () => {
  const poisons = Workload.ids(200, "p")

  test("are more than a consumer keeps: it says that it is held back, loses none, and goes on when they are taken", () =>
    run([...poisons, ...good.slice(0, 100)], (world) =>
      Effect.gen(function* () {
        refuseAll(world)
        const consumer = yield* consume(world, 5, RetryPolicy.make({ maxRetries: 0 }))
        yield* Effect.sleep("1 hour")
        const { inFlight } = yield* world.control.snapshot(queue)
        const kept = inFlight.map(({ metadata }) => metadata.id)
        assert.isAtLeast(kept.length, 100)
        assert.sameMembers([...told(world.books, "Quarantined")], kept)
        const health = yield* Health.check([consumer])
        assert.strictEqual(health.consumers[0]?.quarantined, kept.length)
        assert.strictEqual(health.consumers[0]?.state, "paused")
        assert.isTrue(Health.degraded(health).some(({ reason }) => reason === "quarantine"))
        assert.isFalse(Health.isReady(health, { unreadyWhen: ["quarantine"] }))
        yield* world.balance
        world.faults.settle = undefined
        yield* world.untilEnded()
        assert.strictEqual(consumer.health().state, "running")
        assert.sameMembers([...world.books.deadLettered], [...poisons])
        assert.strictEqual(world.books.acked.size, 100)
        assert.isTrue(poisons.every((id) => runsOf(world.books, id) === 1))
        yield* world.balance
      })
    ))

  test("hold up nobody while a consumer has room for them", () =>
    run([...poisons.slice(0, 90), ...good], (world) =>
      Effect.gen(function* () {
        refuseAll(world)
        const consumer = yield* consume(world, 5, RetryPolicy.make({ maxRetries: 0 }))
        yield* world.untilEnded(good)
        assert.deepStrictEqual([consumer.health().state, consumer.health().quarantined], ["running", 90])
        assert.sameMembers([...told(world.books, "Quarantined")], poisons.slice(0, 90))
        yield* world.balance
      })
    ))
})

describe("a drain", () => {
  test("with messages in quarantine, held ones and refused give-backs ends at once and gives all back", () =>
    run(["p0", "p1", ...good.slice(0, 8)], (world) =>
      Effect.gen(function* () {
        refuseAll(world)
        const consumer = yield* consume(world, 2, RetryPolicy.make({ maxRetries: 0 }))
        yield* Effect.sleep(15)
        // From now on nothing is taken: acks are held, and the messages that wait cannot be given back.
        world.faults.settle = ({ settlement }) =>
          settlement._tag === "Release" ? broken("Unsupported") : broken("Throttled")
        yield* Effect.sleep(100)
        const { backoff, quarantined, state } = consumer.health()
        assert.deepStrictEqual([state, quarantined, backoff[0]?.because], ["paused", 2, "broker"])
        const begun = world.now()
        const { complete, interrupted } = yield* consumer.drain()
        assert.deepStrictEqual([complete, interrupted, world.now() - begun], [true, 0, 0])
        const { inFlight, ready } = yield* world.control.snapshot(queue)
        assert.lengthOf(inFlight, 0)
        assert.lengthOf(ready, 10)
        yield* world.balance
      })
    ))
})
