/** A browser over a subscription with leases. */
import { assert, it } from "@effect/vitest"
import type { Broker, Delivery } from "@requeue/core/port"
import { Metadata, RetryPolicy } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as Browser from "../src/Browser.ts"

const delivery: Delivery.Delivery = {
  body: new Uint8Array(),
  headers: {},
  attempts: 1,
  metadata: Metadata.make("m1", 0),
  receipt: undefined
}

/** Milliseconds of a lease, and of each call. */
const [duration, takes] = [3000, 10_000]

/** A broker with one message, and slow calls. `calls` has them when they begin and end. */
const slow = (calls: Array<string>): Browser.Subscribable => {
  const call = (name: string): Effect.Effect<ReadonlyArray<never>> =>
    Effect.sync(() => void calls.push(`${name} begins`)).pipe(
      Effect.andThen(Effect.sleep(takes)),
      Effect.andThen(Effect.sync(() => void calls.push(`${name} ends`))),
      Effect.as([])
    )
  return {
    // Cast, because a browser reads nothing else of them.
    capabilities: { broker: "slow", lease: { duration, max: 1e9 } } as Browser.Subscribable["capabilities"],
    subscribe: ({ onDelivery }) =>
      Effect.succeed<Broker.Subscription>({
        credit: (limit) => limit > 0 && onDelivery(delivery),
        settle: ([request]) => call(request!.settlement._tag),
        extend: () => call("extend"),
        identify: () => "m1"
      })
  }
}

it.effect("removes a message by an ack, but not while its lease is extended", () =>
  Effect.gen(function* () {
    const calls: Array<string> = []
    const options = { queue: "q.dlq", retry: RetryPolicy.make(), from: "ready", limit: 1 } as const
    const { next, remove } = yield* Browser.overSubscription(slow(calls), options)
    yield* next(1)
    yield* TestClock.adjust(duration)
    const removed = yield* Effect.forkChild(remove([delivery]), { startImmediately: true })
    yield* TestClock.adjust(2 * takes)
    yield* Fiber.join(removed)
    assert.deepStrictEqual(calls, ["extend begins", "extend ends", "Ack begins", "Ack ends"])
  })
)
