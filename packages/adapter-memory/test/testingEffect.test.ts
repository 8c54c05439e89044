/** The broker for users' tests, with Effect. */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, Consumer, Producer, RetryPolicy } from "@requeue/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { TestClock } from "effect/testing"
import { layer, TestBroker } from "../src/Testing.ts"

const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.sequence(["10 seconds", "1 minute"]) })

const send = (queue: string) => Effect.flatMap(Producer.make(queue), ({ send }) => send({ url: "u" }, { id: "a" }))

describe("Testing.layer", () => {
  it.effect("fails three times, 10 s and 60 s apart, and is then a dead letter; nothing else happens", () =>
    Effect.gen(function* () {
      const broker = yield* TestBroker
      yield* Consumer.start("webhooks", { retry }, () => Effect.fail(new Error("503")))
      yield* send("webhooks")
      yield* broker.advance("10 seconds")
      assert.deepStrictEqual(
        broker.happened().map(({ _tag, at }) => [_tag, at]),
        [
          ["Sent", 0],
          ["Received", 0],
          ["RetryScheduled", 0],
          ["Received", 10_000],
          ["RetryScheduled", 10_000]
        ]
      )
      yield* TestClock.adjust("59 seconds")
      assert.deepStrictEqual(broker.happened(), [])
      yield* broker.waitUntilIdle({ within: "1 second" })
      assert.strictEqual(broker.now(), 70_000)
      assert.strictEqual((yield* broker.sent("webhooks")).length, 1)
      assert.deepStrictEqual((yield* broker.deadLettersOf("webhooks"))[0]?.attempts, 3)
      assert.strictEqual(broker.happened().length, 2)
      yield* broker.advance("1 day")
      yield* broker.expectNothingElse
    }).pipe(Effect.provide(layer()))
  )

  it.effect("TestClock.adjust goes through a chain of delays in order", () =>
    Effect.gen(function* () {
      const broker = yield* TestBroker
      const seen: Array<number> = []
      yield* Consumer.start("q", { retry }, () =>
        Effect.suspend(() => {
          seen.push(broker.now())
          return Effect.fail("no")
        })
      )
      yield* send("q")
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(seen, [0, 10_000, 70_000])
    }).pipe(Effect.provide(layer()))
  )

  it.effect("moves the clock for handlers that sleep", () =>
    Effect.gen(function* () {
      const broker = yield* TestBroker
      yield* Consumer.start("q", {}, () => Effect.sleep("20 seconds"))
      yield* send("q")
      yield* broker.waitUntilIdle()
      assert.strictEqual(broker.now(), 20_000)
    }).pipe(Effect.provide(layer()))
  )

  it.effect("an assertion that fails is a defect that says what is left", () =>
    Effect.gen(function* () {
      const broker = yield* TestBroker
      yield* Consumer.start("q", { retry }, () => Effect.fail("no"))
      yield* send("q")
      const exit = yield* Effect.exit(broker.waitUntilIdle({ within: "5 seconds" }))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
      assert.include(
        String(Exit.isFailure(exit) && Cause.squash(exit.cause)),
        "expected every consumer to be idle within 5s, but a message of q is delayed for another 5s (attempt 2, id a)"
      )
    }).pipe(Effect.provide(layer()))
  )
})
