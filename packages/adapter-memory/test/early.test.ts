/** Deliveries that go back without a run, on brokers that count them. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, Consumer, RetryPolicy } from "@requeue/core"
import { Outgoing } from "@requeue/core/port"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"

const message = Outgoing.make({ queue: "work", id: "m1", body: Buffer.from("1"), headers: {}, delay: 0 }, 0)

it.effect("one that comes before its time costs no attempt of its policy", () =>
  Effect.gen(function* () {
    const broker = yield* MemoryBroker.make({ faults: { earlyBy: 500, countReleases: true } })
    const attempts: Array<number> = []
    const retry = RetryPolicy.make({ maxRetries: 5, deadLetter: { queue: "dead" } })
    const start = Consumer.start("work", { retry, retryDelay: 1000 }, (run) => {
      attempts.push(run.attempts)
      return Effect.fail(new Error("no"))
    })
    yield* Effect.provideService(start, Broker.Broker, broker)
    yield* broker.publish([message])
    for (let step = 0; step < 100; step++) yield* TestClock.adjust("100 millis")
    assert.deepStrictEqual(attempts, [1, 2, 3, 4, 5, 6])
  }).pipe(Effect.scoped)
)
