/** All that waits in a memory broker, and the messages in backoff, through both faces and in virtual time. */
import { deadLetters, delayedMessages } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import { Broker, RetryPolicy } from "@requeue/core"
import { Backlog } from "@requeue/core/port"
import { DelayedMessages } from "@requeue/operations"
import { constant } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { MemoryBroker } from "../src/index.ts"
import { probe, send, text } from "./harness.ts"
import { open, turns } from "./virtualBroker.ts"

const request = { queue: "q", retry: RetryPolicy.make() }

describe("a backlog", () => {
  it.effect("tells everything: ages, consumers, and when delayed messages are due", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      yield* send(broker, "q", ["soon"], 900)
      yield* send(broker, "q", ["minute", "other"], 60_000)
      yield* send(broker, "q", ["late"], 7_200_000)
      yield* send(broker, "q", ["a", "b"])
      yield* probe(broker, "q", 1)
      yield* TestClock.adjust(500)
      assert.deepStrictEqual(yield* Backlog.of(broker, request), {
        ready: 1,
        inFlight: 1,
        delayed: 4,
        backoff: [
          { within: 1000, count: 1 },
          { within: 60_000, count: 2 },
          { within: 21_600_000, count: 1 }
        ],
        undelivered: 0,
        oldest: 500,
        consumers: 1,
        remarks: {}
      })
    })
  )

  it.effect("is empty in a queue that is, and of no age", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      assert.deepInclude(yield* Backlog.of(broker, request), {
        ready: 0,
        delayed: 0,
        backoff: [],
        oldest: 0,
        consumers: 0
      })
    })
  )
})

describe("delayed messages", () => {
  it.effect("that are removed never come, whatever the clock says; the others come in their order", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make()
      for (const [index, id] of ["a", "b", "c", "d"].entries()) yield* send(broker, "q", [id], 1000 * (index + 1))
      const { purge } = yield* DelayedMessages.make("q").pipe(Effect.provideService(Broker.Broker, broker))
      const purged = yield* purge({ filter: ({ body }) => ["a", "c"].includes(new TextDecoder().decode(body)) })
      assert.deepStrictEqual(purged, { removed: 2, browsed: 4, isWhole: true })
      const consumer = yield* probe(broker, "q", 10)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(consumer.inbox.map(text), ["b", "d"])
      assert.deepStrictEqual(yield* broker.admin.counts("q"), { ready: 0, inFlight: 2, delayed: 0 })
    })
  )

  it.effect("make room for publishers that wait when they are removed", () =>
    Effect.gen(function* () {
      const broker = yield* MemoryBroker.make({ maxMessages: 1 })
      yield* send(broker, "q", ["a"], 60_000)
      const waiting = yield* Effect.forkChild(send(broker, "q", ["b"]))
      yield* Effect.yieldNow
      assert.isUndefined(waiting.pollUnsafe())
      const { purge } = yield* DelayedMessages.make("q").pipe(Effect.provideService(Broker.Broker, broker))
      yield* purge({ all: true })
      yield* Effect.yieldNow
      assert.isDefined(waiting.pollUnsafe())
    })
  )

  it("are listed, counted and removed without Effect, with the error of their last attempt", async () => {
    await using broker = await open()
    const { requeue } = broker
    await requeue.consume("q", { retry: { maxRetries: 1, backoff: constant("1 hour") } }, ({ id }) => {
      throw new Error(`no ${id}`)
    })
    await requeue.sendBatch("q", [
      { id: "a", body: 1 },
      { id: "b", body: 2 }
    ])
    await turns()
    const { count, list, purge } = delayedMessages(requeue, "q")
    const { messages } = await list()
    assert.deepStrictEqual(
      messages.map(({ attempts, due, history, id }) => [id, attempts, due, history[0]?.error]),
      [
        ["a", 2, broker.now() + 3_600_000, "Error: no a"],
        ["b", 2, broker.now() + 3_600_000, "Error: no b"]
      ]
    )
    assert.strictEqual((await purge({ filter: ({ id }) => id === "a" })).removed, 1)
    assert.deepStrictEqual(await count(), { selected: 1, browsed: 1, isWhole: true })
    await broker.advance("2 hours")
    const letters = await deadLetters(requeue, "q.dlq").list()
    assert.deepStrictEqual(
      letters.map(({ id }) => id),
      ["b"]
    )
  })

  it("refuse what is no option of theirs", async () => {
    await using broker = await open()
    assert.throws(
      () => delayedMessages(broker.requeue, "q", { retries: 3 } as object),
      /DelayedMessages\.make \(queue q\): unknown option/
    )
    const wrong = await delayedMessages(broker.requeue, "q")
      .purge({} as { readonly all: true }) // As JavaScript may.
      .catch((error: unknown) => error)
    assert.match(String(wrong), /DelayedMessages\.purge \(queue q\): nothing says which/)
  })
})
