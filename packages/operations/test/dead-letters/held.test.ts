/** Counting the letters of a queue that another reader has just given back. */
import type { Broker } from "@requeue/core"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as Held from "../../src/dead-letters/internal/held.ts"

/** A broker that counts these, one after another, and the last for ever. */
const counting = (...answers: ReadonlyArray<Broker.Counts>) => {
  let asked = 0
  const counts = () => Effect.sync(() => answers[Math.min(asked++, answers.length - 1)]!)
  return { admin: { counts } } as unknown as Broker.Service // Cast, because nothing else of it is asked.
}

const none: Broker.Counts = { ready: 0, inFlight: 0, delayed: 0, isRead: true }
const all: Broker.Counts = { ready: 5, inFlight: 0, delayed: 0, isRead: false }

const counted = (known: number | undefined, millis: number, ...answers: ReadonlyArray<Broker.Counts>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(Held.count(counting(...answers), "orders.dlq", known))
    yield* TestClock.adjust(millis)
    return fiber.pollUnsafe() === undefined ? "counts" : (yield* Fiber.join(fiber)).ready
  })

it.effect("letters that are known, and in no count yet, are waited for", () =>
  Effect.gen(function* () {
    const slow = [...Array.from({ length: 100 }, () => none), all]
    assert.strictEqual(yield* counted(5, 6000, ...slow), 5)
    assert.strictEqual(yield* counted(5, 2000, ...slow), "counts")
  })
)

it.effect("letters that another reader took for good are waited for no longer than ten seconds", () =>
  Effect.gen(function* () {
    assert.strictEqual(yield* counted(5, 9900, none), "counts")
    assert.strictEqual(yield* counted(5, 10_050, none), 0)
  })
)

it.effect("where no number is known, a reader that has nothing is waited for as long as a look may take", () =>
  Effect.gen(function* () {
    assert.strictEqual(yield* counted(undefined, 950, none), "counts")
    assert.strictEqual(yield* counted(undefined, 1050, none), 0)
    assert.strictEqual(yield* counted(undefined, 0, all), 5)
  })
)
