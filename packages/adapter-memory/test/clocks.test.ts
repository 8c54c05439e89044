/** Clocks that are wrong. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, Consumer } from "@requeue/core"
import { Outgoing } from "@requeue/core/port"
import { assert, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"

it.effect.each([30_000, 7_200_000])("a producer whose clock is %d ms ahead delays by what it asked for", (ahead) =>
  Effect.gen(function* () {
    const broker = yield* MemoryBroker.make()
    const handled: Array<number> = []
    const start = Consumer.start("work", {}, () => Effect.map(Clock.currentTimeMillis, (now) => void handled.push(now)))
    yield* Effect.provideService(start, Broker.Broker, broker)
    const before = yield* Clock.currentTimeMillis
    const sent = { queue: "work", id: "m1", body: Buffer.from("1"), headers: {}, delay: 10_000 }
    yield* broker.publish([Outgoing.make(sent, before + ahead)])
    for (let second = 0; second < 20; second++) yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(handled, [before + 10_000])
  }).pipe(Effect.scoped)
)
