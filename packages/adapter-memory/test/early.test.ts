/** Deliveries that go back without a run, on brokers that count them. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, Codec, Consumer, Outgoing, QueueDefinition, RetryPolicy } from "@requeue/core"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"

const message = Outgoing.make({ queue: "work", id: "m1", body: Buffer.from("1"), headers: {}, delay: 0 }, 0)

/** Lets promises settle. */
const settled = Effect.promise(() => new Promise((resume) => setImmediate(resume)))

it.effect("one that comes before its time costs no attempt of its policy", () =>
  Effect.gen(function* () {
    const broker = yield* MemoryBroker.make({ vices: { earlyBy: 500, countReleases: true } })
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

it.effect("one whose codec ends while the consumer is paused costs no attempt", () =>
  Effect.gen(function* () {
    const broker = yield* MemoryBroker.make({ vices: { countReleases: true } })
    const attempts: Array<number> = []
    let decoded: (body: unknown) => void = () => {}
    const queue = QueueDefinition.make<unknown>("work", {
      codec: { ...Codec.json, decode: () => new Promise<unknown>((resolve) => (decoded = resolve)) }
    })
    const start = Consumer.start(queue, {}, (run) => void attempts.push(run.attempts))
    const consumer = yield* Effect.provideService(start, Broker.Broker, broker)
    yield* broker.publish([message])
    for (let round = 0; round < 3; round++) {
      yield* settled
      consumer.pause()
      decoded(1)
      yield* settled
      consumer.resume()
    }
    yield* settled
    decoded(1)
    yield* settled
    assert.deepStrictEqual(attempts, [1])
  }).pipe(Effect.scoped)
)
