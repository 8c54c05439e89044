import { assert, describe, it } from "@effect/vitest"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { MemoryBroker, type Faults } from "../src/index.ts"
import { bytes, probe, reasons, send, text } from "./harness.ts"

const controlled = (faults: Faults.Faults) => MemoryBroker.makeControlled({ faults })

it.effect("countReleases", () =>
  Effect.gen(function* () {
    const { broker } = yield* controlled({ countReleases: true })
    assert.isFalse(broker.capabilities.uncountedRelease)
    const consumer = yield* probe(broker, "q", 1)
    yield* send(broker, "q", ["a"])
    yield* consumer.settleOne(consumer.next(), Settlement.Release())
    assert.strictEqual(consumer.next().attempts, 2)
  })
)

it.effect("overCountOnLoss", () =>
  Effect.gen(function* () {
    const { broker, control } = yield* controlled({ overCountOnLoss: true })
    const consumer = yield* probe(broker, "q", 1)
    yield* send(broker, "q", ["a"])
    consumer.next()
    yield* control.cut
    assert.strictEqual(consumer.next().attempts, 3)
  })
)

it.effect("earlyBy: early, and notBefore tells", () =>
  Effect.gen(function* () {
    const { broker } = yield* controlled({ earlyBy: 300 })
    const consumer = yield* probe(broker, "q", 1)
    yield* send(broker, "q", ["a"], 1000)
    yield* TestClock.adjust(699)
    assert.deepStrictEqual(consumer.inbox, [])
    yield* TestClock.adjust(1)
    assert.strictEqual(consumer.next().metadata.notBefore, 1000)
  })
)

it.effect("forgetDelaysOnRestart: early in the order of being due; a cut forgets nothing", () =>
  Effect.gen(function* () {
    const { broker, control } = yield* controlled({ forgetDelaysOnRestart: true })
    const consumer = yield* probe(broker, "q", 10)
    yield* send(broker, "q", ["b"], 2000)
    yield* send(broker, "q", ["a"], 1000)
    yield* control.cut
    assert.deepStrictEqual(consumer.inbox, [])
    yield* control.restart
    assert.strictEqual(consumer.reconnects(), 2)
    assert.deepStrictEqual(
      consumer.inbox.map((delivery) => [text(delivery), delivery.metadata.notBefore]),
      [
        ["a", 1000],
        ["b", 2000]
      ]
    )
    yield* TestClock.adjust(5000)
    assert.strictEqual(consumer.inbox.length, 2)
  })
)

it.effect("duplicateOnLostConfirmation", () =>
  Effect.gen(function* () {
    const { broker } = yield* controlled({ duplicateOnLostConfirmation: 2 })
    yield* send(broker, "q", ["a"])
    assert.strictEqual((yield* Effect.flip(send(broker, "q", ["b"]))).reason, "Timeout")
    yield* send(broker, "q", ["b"])
    assert.strictEqual((yield* broker.admin.counts("q")).ready, 3)
  })
)

describe("failSettle", () => {
  it.effect("ConnectionLost: the delivery stays ours and can be settled again", () =>
    Effect.gen(function* () {
      const { broker } = yield* controlled({ failSettle: { every: 2, reason: "ConnectionLost" } })
      const consumer = yield* probe(broker, "q", 2)
      yield* send(broker, "q", ["a", "b"])
      const [a, b] = consumer.inbox.splice(0)
      const requests = [a!, b!].map((delivery) => ({ delivery, settlement: Settlement.Ack }))
      const failures = yield* consumer.settle(requests)
      assert.deepStrictEqual(reasons(failures), ["ConnectionLost"])
      assert.strictEqual(failures[0]!.delivery, b)
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 0, inFlight: 1, delayed: 0 })
      assert.deepStrictEqual(yield* consumer.settleOne(b!, Settlement.Ack), [])
    })
  )

  it.effect("LeaseLost: the delivery goes back", () =>
    Effect.gen(function* () {
      const { broker } = yield* controlled({ failSettle: { every: 1, reason: "LeaseLost" } })
      const consumer = yield* probe(broker, "q", 1)
      yield* send(broker, "q", ["a"])
      assert.deepStrictEqual(reasons(yield* consumer.settleOne(consumer.next(), Settlement.Ack)), ["LeaseLost"])
      assert.strictEqual(consumer.next().attempts, 2)
    })
  )
})

describe("lease", () => {
  it.effect("ends when it is not extended, and cannot be extended beyond its maximum", () =>
    Effect.gen(function* () {
      const { broker } = yield* controlled({ lease: { duration: 100, max: 250 } })
      assert.deepStrictEqual(broker.capabilities.lease, { duration: 100, max: 250 })
      const consumer = yield* probe(broker, "q", 1)
      yield* send(broker, "q", ["a"])
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(
        consumer.inbox.map(({ attempts }) => attempts),
        [1, 2]
      )
      const [stale, held] = consumer.inbox.splice(0)
      assert.deepStrictEqual(reasons(yield* consumer.settleOne(stale!, Settlement.Ack)), ["LeaseLost"])
      yield* TestClock.adjust(90)
      assert.deepStrictEqual(reasons(yield* consumer.extend([stale!, held!])), ["LeaseLost"])
      yield* TestClock.adjust(90)
      yield* consumer.extend([held!])
      yield* TestClock.adjust(69)
      assert.deepStrictEqual(consumer.inbox, [])
      yield* TestClock.adjust(1)
      assert.strictEqual(consumer.next().attempts, 3)
    })
  )

  it.effect("of a settled delivery does not end", () =>
    Effect.gen(function* () {
      const { broker } = yield* controlled({ lease: { duration: 100, max: 250 } })
      const consumer = yield* probe(broker, "q", 1)
      yield* send(broker, "q", ["a"])
      yield* consumer.settleOne(consumer.next(), Settlement.Ack)
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(consumer.inbox, [])
    })
  )
})

describe("capabilities", () => {
  const reach = { native: 1000, beyond: undefined }

  it.effect("delays beyond the reach are refused where nothing emulates them; a release is cut", () =>
    Effect.gen(function* () {
      const { broker } = yield* controlled({ capabilities: { sendDelay: reach, retryDelay: reach } })
      assert.strictEqual((yield* Effect.flip(send(broker, "q", ["a"], 1001))).reason, "Unsupported")
      yield* send(broker, "q", ["a"], 1000)
      const consumer = yield* probe(broker, "q", 1)
      yield* TestClock.adjust(1000)
      const delivery = consumer.next()
      assert.deepStrictEqual(reasons(yield* consumer.settleOne(delivery, Settlement.Retry(1001))), ["Unsupported"])
      assert.deepStrictEqual(yield* consumer.settleOne(delivery, Settlement.Release(5000)), [])
      yield* TestClock.adjust(1000)
      assert.strictEqual(consumer.next().attempts, 1)
    })
  )

  it.effect("delays beyond the reach are kept where something emulates them", () =>
    Effect.gen(function* () {
      const { broker } = yield* controlled({ capabilities: { sendDelay: { native: 1000, beyond: "hops" } } })
      yield* send(broker, "q", ["a"], 5000)
      assert.strictEqual((yield* broker.admin.counts("q")).delayed, 1)
    })
  )

  it.effect("delays are rounded up to the resolution", () =>
    Effect.gen(function* () {
      const { broker } = yield* controlled({ capabilities: { delayResolution: 1000 } })
      const consumer = yield* probe(broker, "q", 1)
      yield* send(broker, "q", ["a"], 1)
      yield* TestClock.adjust(999)
      assert.deepStrictEqual(consumer.inbox, [])
      yield* TestClock.adjust(1)
      yield* consumer.settleOne(consumer.next(), Settlement.Retry(1001))
      yield* TestClock.adjust(1999)
      assert.deepStrictEqual(consumer.inbox, [])
      yield* TestClock.adjust(1)
      assert.strictEqual(consumer.next().metadata.notBefore, 0)
    })
  )

  it.effect("no headers, no history, and numbers that cannot be told", () =>
    Effect.gen(function* () {
      const counts = { ready: true, inFlight: false, delayed: false }
      const { broker, control } = yield* controlled({
        capabilities: { headers: false, historyOnRetry: false, counts }
      })
      yield* control.publishRaw("q", bytes("raw"), { kind: "x" })
      const consumer = yield* probe(broker, "q", 1)
      const delivery = consumer.next()
      assert.deepStrictEqual(delivery.headers, {})
      yield* consumer.settleOne(delivery, Settlement.Retry(0))
      const again = consumer.next()
      assert.strictEqual(again.attempts, 2)
      assert.deepStrictEqual(again.metadata, delivery.metadata)
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 0, inFlight: undefined, delayed: undefined })
    })
  )
})
