import { assert, describe, it } from "@effect/vitest"
import { BrokerError } from "@requeue/core"
import { Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as Polls from "../src/internal/consume/polls.ts"

const down = new BrokerError.BrokerError({
  broker: "sqs",
  operation: "receive",
  reason: "ConnectionFailed",
  detail: "down"
})

type Receive = Parameters<typeof Polls.make<string>>[0]["receive"]

/** Polls that are answered by hand. */
const open = Effect.gen(function* () {
  const timers = yield* Timers.make
  const underWay: Array<{ readonly count: number; readonly on: Parameters<Receive>[1] }> = []
  const told: Array<string> = []
  let inFlight = 0
  let held = 0
  let may = true
  const polls = Polls.make<string>({
    timers,
    maxPolls: 4,
    pollSize: 10,
    waitTime: 20_000,
    inFlight: () => inFlight,
    held: () => held,
    receive: (count, on) => underWay.push({ count, on }),
    onMessages: (messages) => (inFlight += messages.length),
    mayPoll: () => may,
    onFailure: () => told.push("failure"),
    onSuccess: () => told.push("success")
  })
  return {
    polls,
    underWay,
    told,
    /** The first poll that waits comes back with so many messages. */
    answer: (count: number) => underWay.shift()!.on.received(Array.from({ length: count }, () => "m")),
    fail: () => underWay.shift()!.on.failed(down),
    settled: (count: number) => {
      inFlight -= count
      polls.refresh()
    },
    /** So many of those in flight cannot be settled for now. */
    hold: (count: number) => (held += count),
    /** Whether polls may begin. */
    allow: (allowed: boolean) => {
      may = allowed
      polls.refresh()
    },
    counts: () => underWay.map(({ count }) => count),
    inFlight: () => inFlight
  }
})

describe("polling", () => {
  it.effect("asks for nothing without credit, and for no more than the credit", () =>
    Effect.gen(function* () {
      const { counts, polls } = yield* open
      assert.deepStrictEqual(counts(), [])
      polls.credit(3)
      assert.deepStrictEqual(counts(), [3])
    })
  )

  it.effect("of a server that does not wait are made after pauses that grow up to the time of a poll", () =>
    Effect.gen(function* () {
      const { answer, counts, polls } = yield* open
      polls.credit(10)
      const pauses: Array<number> = []
      for (let empty = 0; empty < 12; empty++) {
        answer(0)
        let pause = 0
        for (; counts().length === 0; pause += 250) yield* TestClock.adjust(250)
        pauses.push(pause)
      }
      assert.deepStrictEqual(pauses, [0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 20_000, 20_000, 20_000, 20_000])
      answer(1)
      yield* TestClock.adjust(50)
      answer(0)
      yield* TestClock.adjust(50)
      assert.deepStrictEqual(counts(), [9])
    })
  )

  it.effect("pauses for no polls that a server wakes for what another poll gets", () =>
    Effect.gen(function* () {
      const { answer, counts, polls } = yield* open
      polls.credit(100)
      for (const _ of [1, 2, 3]) answer(10)
      assert.strictEqual(counts().length, 4)
      answer(1)
      for (const _ of [1, 2, 3]) answer(0)
      assert.deepStrictEqual(counts(), [10])
      answer(5)
      assert.deepStrictEqual(counts(), [10, 10])
      // These began after the last messages had come: nobody else got what they were woken for.
      for (const _ of [1, 2]) answer(0)
      assert.deepStrictEqual(counts(), [])
      yield* TestClock.adjust("250 millis")
      assert.deepStrictEqual(counts(), [10])
    })
  )

  it.effect("has one poll while there is nothing, and more while there is much", () =>
    Effect.gen(function* () {
      const { answer, counts, polls } = yield* open
      polls.credit(100)
      assert.deepStrictEqual(counts(), [10])
      answer(0)
      assert.deepStrictEqual(counts(), [10])
      answer(10)
      assert.deepStrictEqual(counts(), [10, 10])
      answer(10)
      assert.deepStrictEqual(counts(), [10, 10, 10])
      for (let round = 0; round < 3; round++) answer(10)
      assert.strictEqual(counts().length, 4)
      yield* TestClock.adjust("20 seconds")
      for (let round = 0; round < 4; round++) answer(0)
      assert.deepStrictEqual(counts(), [10])
    })
  )

  it.effect("never asks for more than is free, whatever is under way", () =>
    Effect.gen(function* () {
      const { answer, counts, inFlight, polls } = yield* open
      polls.credit(25)
      answer(10)
      assert.deepStrictEqual([inFlight(), counts()], [10, [10]])
      answer(10)
      assert.deepStrictEqual([inFlight(), counts()], [20, []])
      yield* TestClock.adjust("50 millis")
      assert.deepStrictEqual(counts(), [5])
    })
  )

  it.effect("waits a moment for more room rather than to ask for one message at a time", () =>
    Effect.gen(function* () {
      const { answer, counts, polls, settled } = yield* open
      polls.credit(10)
      answer(10)
      settled(1)
      yield* TestClock.adjust("30 millis")
      settled(3)
      assert.deepStrictEqual(counts(), [])
      yield* TestClock.adjust("20 millis")
      assert.deepStrictEqual(counts(), [4])
    })
  )

  it.effect(
    "expects no room of deliveries that cannot be settled: a credit for them beside the others is as without them",
    () =>
      Effect.gen(function* () {
        const { answer, counts, hold, inFlight, polls, settled } = yield* open
        polls.credit(1)
        answer(1)
        hold(1)
        polls.credit(2)
        assert.deepStrictEqual(counts(), [1])
        for (const _ of [1, 2, 3]) {
          answer(1)
          assert.deepStrictEqual([inFlight(), counts()], [2, []])
          settled(1)
          assert.deepStrictEqual(counts(), [1])
        }
        polls.credit(1)
        answer(0)
        assert.deepStrictEqual([inFlight(), counts()], [1, []])
      })
  )

  it.effect("does not wait when there is much room", () =>
    Effect.gen(function* () {
      const { answer, counts, polls, settled } = yield* open
      polls.credit(20)
      answer(10)
      answer(10)
      settled(10)
      assert.deepStrictEqual(counts(), [10])
    })
  )

  it.effect("stops without credit, and what was under way still comes", () =>
    Effect.gen(function* () {
      const { answer, counts, inFlight, polls } = yield* open
      polls.credit(10)
      polls.credit(0)
      answer(3)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([inFlight(), counts()], [3, []])
    })
  )

  it.effect("begins none while it may not, and at once when it may", () =>
    Effect.gen(function* () {
      const { allow, answer, counts, polls } = yield* open
      allow(false)
      polls.credit(10)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(counts(), [])
      allow(true)
      assert.deepStrictEqual(counts(), [10])
      allow(false)
      answer(0)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(counts(), [])
    })
  )

  it.effect("asks again with growing pauses after a failure, and tells each answer", () =>
    Effect.gen(function* () {
      const { answer, counts, fail, polls, told } = yield* open
      polls.credit(10)
      for (const pause of [250, 500, 1000]) {
        fail()
        yield* TestClock.adjust(pause - 1)
        assert.deepStrictEqual(counts(), [])
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(counts(), [10])
      }
      answer(0)
      assert.deepStrictEqual(told, ["failure", "failure", "failure", "success"])
    })
  )

  it.effect("tells how long what is given back would be received by a poll that nobody wants", () =>
    Effect.gen(function* () {
      const { answer, polls } = yield* open
      polls.credit(30)
      answer(10)
      yield* TestClock.adjust("15 seconds")
      assert.deepStrictEqual([polls.endsIn(), polls.holdFor()], [5000, 0])
      polls.credit(0)
      assert.strictEqual(polls.holdFor(), 5500)
      answer(0)
      assert.strictEqual(polls.holdFor(), 5500)
      answer(0)
      assert.deepStrictEqual([polls.endsIn(), polls.holdFor()], [0, 0])
    })
  )

  it.effect("ends when the last poll has ended", () =>
    Effect.gen(function* () {
      const { answer, counts, polls } = yield* open
      let hasEnded = false
      polls.credit(10)
      polls.close(() => (hasEnded = true))
      assert.isFalse(hasEnded)
      answer(2)
      assert.isTrue(hasEnded)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(counts(), [])
    })
  )
})
