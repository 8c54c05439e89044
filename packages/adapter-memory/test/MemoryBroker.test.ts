import { assert, describe, it } from "@effect/vitest"
import { type Delivery } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { MemoryBroker } from "../src/index.ts"
import { Port } from "@requeue/conformance"
import { bytes, probe, reasons, send, text } from "./harness.ts"

const boom = { name: "Boom", message: "no" }

describe("delivery", () => {
  it.effect("keeps messages without a consumer and delivers them in order", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      yield* send(broker, "q", ["a", "b", "c"])
      const consumer = yield* probe(broker, "q", 2)
      assert.deepStrictEqual(consumer.inbox.map(text), ["a", "b"])
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 1, inFlight: 2, delayed: 0 })
      yield* consumer.settleOne(consumer.next(), Settlement.Ack)
      assert.deepStrictEqual(consumer.inbox.map(text), ["b", "c"])
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 0, inFlight: 2, delayed: 0 })
    })
  )

  it.effect("takes turns between consumers with credit", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      const one = yield* probe(broker, "q", 3)
      const two = yield* probe(broker, "q", 1)
      const none = yield* probe(broker, "q", 0)
      yield* send(broker, "q", ["a", "b", "c", "d", "e"])
      assert.deepStrictEqual(one.inbox.map(text), ["a", "c", "d"])
      assert.deepStrictEqual(two.inbox.map(text), ["b"])
      assert.deepStrictEqual(none.inbox, [])
      none.credit(1)
      assert.deepStrictEqual(none.inbox.map(text), ["e"])
    })
  )

  it("handlers that send to the next of 3,000 queues do not nest", async () => {
    await using requeue = await connect(MemoryBroker.layer())
    const last = Promise.withResolvers<void>()
    const queues = Array.from({ length: 3000 }, (_, n) => `q${n}`)
    for (const [n, queue] of queues.entries())
      await requeue.consume(queue, {}, async () => {
        if (n + 1 < queues.length) void requeue.send(queues[n + 1]!, n)
        else last.resolve()
      })
    await requeue.send(queues[0]!, 0)
    await last.promise
  })

  it.effect("a consumer that settles and publishes in its delivery, without an end, holds up no other queue", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      let runs = 0
      const busy = yield* probe(broker, "busy", 1, () => {
        // An end, so that a broker which never yields fails the test instead of hanging it.
        if (++runs === 10_000) return
        Effect.runFork(Effect.andThen(busy.settleOne(busy.next(), Settlement.Ack), send(broker, "busy", ["again"])))
      })
      const other = yield* probe(broker, "other", 1)
      yield* send(broker, "busy", ["first"])
      yield* send(broker, "other", ["x"])
      while (other.inbox.length === 0 && runs < 10_000) yield* Effect.yieldNow
      assert.isBelow(runs, 10_000)
      assert.deepStrictEqual(other.inbox.map(text), ["x"])
    })
  )

  it.effect("lowered credit stops deliveries before the settlement that follows", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      const consumer = yield* probe(broker, "q", 1)
      yield* send(broker, "q", ["a", "b"])
      const first = consumer.next()
      consumer.credit(0)
      yield* consumer.settleOne(first, Settlement.Retry(0))
      assert.deepStrictEqual(consumer.inbox, [])
      consumer.credit(2)
      assert.deepStrictEqual(consumer.inbox.map(text), ["b", "a"])
    })
  )

  it.effect("a delayed message joins the tail when it is due, never before", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      yield* send(broker, "q", ["late"], 1000)
      yield* send(broker, "q", ["a"])
      yield* TestClock.adjust(999)
      yield* send(broker, "q", ["b"])
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 2, inFlight: 0, delayed: 1 })
      yield* TestClock.adjust(1)
      yield* send(broker, "q", ["c"])
      const consumer = yield* probe(broker, "q", 10)
      assert.deepStrictEqual(consumer.inbox.map(text), ["a", "b", "late", "c"])
    })
  )

  it.effect("a delay that was kept needs no look at the wall clock, which may have been set back", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      yield* send(broker, "q", ["late"], 1000)
      yield* TestClock.adjust(1000)
      const consumer = yield* probe(broker, "q", 1)
      assert.strictEqual(consumer.next().metadata.notBefore, 0)
    })
  )

  it.effect("a consumer that settles inside onDelivery neither recurses nor keeps others from running", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      let deliveries = 0
      const consumer = yield* probe(broker, "q", 0, (delivery) => {
        deliveries++
        Effect.runSync(consumer.settleOne(delivery, deliveries < 100_000 ? Settlement.Retry(0) : Settlement.Ack))
      })
      yield* send(broker, "q", ["a"])
      consumer.credit(1)
      assert.isBelow(deliveries, 2000)
      while ((yield* broker.admin.counts("q")).ready !== 0) yield* Effect.yieldNow
      assert.strictEqual(deliveries, 100_000)
    })
  )
})

describe("settlement", () => {
  it.effect("Retry counts, keeps the history, and joins the tail", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      const consumer = yield* probe(broker, "q", 1)
      yield* send(broker, "q", ["a", "b"])
      yield* consumer.settleOne(consumer.next(), Settlement.Retry(0, boom))
      yield* consumer.settleOne(consumer.next(), Settlement.Ack)
      const again = consumer.next()
      assert.strictEqual(text(again), "a")
      assert.strictEqual(again.attempts, 2)
      assert.deepStrictEqual(again.metadata.history, [{ attempt: 1, at: 0, error: "Boom: no", delay: 0 }])
      yield* consumer.settleOne(again, Settlement.Retry(5000))
      yield* TestClock.adjust(4999)
      assert.deepStrictEqual(consumer.inbox, [])
      yield* TestClock.adjust(1)
      const third = consumer.next()
      assert.strictEqual(third.attempts, 3)
      assert.strictEqual(third.metadata.attempts, 0)
      assert.strictEqual(third.metadata.notBefore, 0)
      assert.strictEqual(third.metadata.history.length, 2)
    })
  )

  it.effect("Release puts messages back where they were, uncounted", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      const consumer = yield* probe(broker, "q", 3)
      yield* send(broker, "q", ["a", "b", "c", "d"])
      const [a, b, c] = consumer.inbox.splice(0)
      consumer.credit(0)
      yield* consumer.settle([b!, a!].map((delivery) => ({ delivery, settlement: Settlement.Release() })))
      yield* consumer.settleOne(c!, Settlement.Release(1000))
      consumer.credit(10)
      assert.deepStrictEqual(consumer.inbox.map(text), ["a", "b", "d"])
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(
        consumer.inbox.map((delivery) => [text(delivery), delivery.attempts]),
        [
          ["a", 1],
          ["b", 1],
          ["d", 1],
          ["c", 1]
        ]
      )
      assert.deepStrictEqual(consumer.inbox[3]!.metadata, c!.metadata)
    })
  )

  it.effect("DeadLetter moves the message with its story; Drop removes it", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      const consumer = yield* probe(broker, "q", 2)
      yield* send(broker, "q", ["a", "b"])
      yield* consumer.settleOne(consumer.next(), Settlement.DeadLetter("permanent", "q.dlq", boom))
      yield* consumer.settleOne(consumer.next(), Settlement.Drop("dropped", boom))
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 0, inFlight: 0, delayed: 0 })
      const [letter, ...others] = yield* Port.oldest(broker, "q.dlq", 10)
      assert.deepStrictEqual(others, [])
      assert.strictEqual(text(letter!), "a")
      assert.strictEqual(letter!.attempts, 1)
      assert.deepStrictEqual(letter!.metadata.deadLetter, {
        queue: "q",
        attempts: 1,
        reason: "permanent",
        at: 0,
        error: boom
      })
    })
  )

  it.effect("settles a delivery once, and only for the subscription it was made to", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      const one = yield* probe(broker, "q", 1)
      const two = yield* probe(broker, "q", 1)
      yield* send(broker, "q", ["a", "b"])
      const delivery = one.next()
      const foreign = yield* two.settleOne(delivery, Settlement.Ack)
      assert.deepStrictEqual(reasons(foreign), ["LeaseLost"])
      assert.deepStrictEqual(yield* one.settleOne(delivery, Settlement.Ack), [])
      const twice = yield* one.settle([
        { delivery, settlement: Settlement.Retry(0) },
        { delivery: { ...delivery, receipt: "made up" }, settlement: Settlement.Ack }
      ])
      assert.deepStrictEqual(reasons(twice), ["LeaseLost", "LeaseLost"])
      assert.strictEqual(twice[0]!.delivery, delivery)
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 0, inFlight: 1, delayed: 0 })
      assert.deepStrictEqual(reasons(yield* one.extend([delivery])), ["LeaseLost"])
    })
  )

  it.effect("the end of a subscription gives back what is unsettled, in order and counted", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      const scope = yield* Scope.make()
      const lost = yield* Scope.provide(probe(broker, "q", 2), scope)
      yield* send(broker, "q", ["a", "b", "c"])
      yield* Scope.close(scope, Exit.void)
      const late = yield* lost.settleOne(lost.next(), Settlement.Ack)
      assert.deepStrictEqual(reasons(late), ["LeaseLost"])
      lost.credit(5)
      const consumer = yield* probe(broker, "q", 10)
      assert.deepStrictEqual(
        consumer.inbox.map((delivery) => [text(delivery), delivery.attempts]),
        [
          ["a", 2],
          ["b", 2],
          ["c", 1]
        ]
      )
    })
  )
})

describe("admin", () => {
  it.effect("browse shows what the next consumer would see and touches nothing", () =>
    Effect.gen(function* () {
      const { broker, control } = yield* MemoryBroker.makeControlled()
      yield* send(broker, "q", ["a", "b", "c"])
      yield* send(broker, "q", ["later"], 10)
      const strip = (delivery: Delivery.Delivery) => ({ ...delivery, receipt: undefined })
      const seen = yield* Port.oldest(broker, "q", 2)
      assert.deepStrictEqual((yield* Port.oldest(broker, "q", 2)).map(strip), seen.map(strip))
      const consumer = yield* probe(broker, "q", 2)
      assert.deepStrictEqual(consumer.inbox.map(strip), seen.map(strip))
      const { delayed, inFlight, ready } = yield* control.snapshot("q")
      assert.deepStrictEqual(ready.map(text), ["c"])
      assert.deepStrictEqual(inFlight.map(text), ["a", "b"])
      assert.deepStrictEqual(
        delayed.map(({ delivery, dueIn }) => [text(delivery), dueIn]),
        [["later", 10]]
      )
    })
  )

  it.effect("purge removes what waits and answers how many", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      yield* send(broker, "q", ["a", "b", "c"])
      yield* send(broker, "q", ["later"], 10)
      const consumer = yield* probe(broker, "q", 1)
      assert.strictEqual(yield* broker.admin.purge("q"), 3)
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 0, inFlight: 1, delayed: 0 })
      yield* TestClock.adjust(10)
      yield* consumer.settleOne(consumer.next(), Settlement.Release())
      assert.deepStrictEqual(consumer.inbox.map(text), ["a"])
    })
  )
})

describe("control", () => {
  it.effect("a foreign message gets an id and a time", () =>
    Effect.gen(function* () {
      const { broker, control } = yield* MemoryBroker.makeControlled()
      yield* TestClock.adjust(7)
      yield* control.publishRaw("q", bytes("raw"), { "x-kind": "legacy" })
      const delivery = (yield* probe(broker, "q", 1)).next()
      assert.strictEqual(text(delivery), "raw")
      assert.deepStrictEqual(delivery.headers, { "x-kind": "legacy" })
      assert.strictEqual(delivery.attempts, 1)
      assert.strictEqual(delivery.metadata.firstPublished, 7)
      assert.match(delivery.metadata.id, /./)
    })
  )

  it.effect("cut gives everything back, tells the consumers first, and goes on with the last credit", () =>
    Effect.gen(function* () {
      const { broker, control } = yield* MemoryBroker.makeControlled()
      const seen: Array<number> = []
      const consumer = yield* probe(broker, "q", 2, () => seen.push(consumer?.reconnects() ?? 0))
      yield* send(broker, "q", ["a", "b", "c"])
      const stale = consumer.inbox.splice(0)
      yield* control.cut
      assert.strictEqual(consumer.reconnects(), 1)
      assert.deepStrictEqual(seen, [0, 0, 1, 1])
      assert.deepStrictEqual(
        consumer.inbox.map((delivery) => [text(delivery), delivery.attempts]),
        [
          ["a", 2],
          ["b", 2]
        ]
      )
      const failures = yield* consumer.settleOne(stale[0]!, Settlement.Ack)
      assert.deepStrictEqual(reasons(failures), ["LeaseLost"])
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 1, inFlight: 2, delayed: 0 })
    })
  )
})
