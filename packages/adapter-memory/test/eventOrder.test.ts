/** The order of what a consumer reports. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, Consumer } from "@requeue/core"
import { Outgoing } from "@requeue/core/port"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"

it.effect("a retry is reported before the delivery that it leads to", () =>
  Effect.gen(function* () {
    const broker = yield* MemoryBroker.make()
    const events: Array<string> = []
    const options: Consumer.Options = {
      retryDelay: 0,
      onEvent: (event) => {
        if (event._tag === "Received" || event._tag === "RetryScheduled" || event._tag === "Succeeded") {
          events.push(`${event._tag} ${event.attempts}`)
        }
      }
    }
    const start = Consumer.start("work", options, ({ attempts }) =>
      attempts < 3 ? Effect.fail(new Error("no")) : Effect.void
    )
    yield* Effect.provideService(start, Broker.Broker, broker)
    yield* broker.publish([
      Outgoing.make({ queue: "work", id: "m1", body: Buffer.from("1"), headers: {}, delay: 0 }, 0)
    ])
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(events, [
      "Received 1",
      "RetryScheduled 1",
      "Received 2",
      "RetryScheduled 2",
      "Received 3",
      "Succeeded 3"
    ])
  }).pipe(Effect.scoped)
)
