/** A program's own logger throws: it ends nothing. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { TestClock } from "effect/testing"
import * as Reconnect from "../../src/runtime/Reconnect.ts"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import { BrokerError } from "../../src/port/BrokerError.ts"
import * as Trouble from "../../src/port/Trouble.ts"
import * as Scripted from "../scripted.ts"

const throwing = () => {
  let lines = 0
  const logger = Logger.make(() => {
    lines++
    throw new Error("the disk is full")
  })
  const within = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    effect.pipe(
      Effect.provideService(References.CurrentLoggers, new Set([logger])),
      Effect.provideService(References.MinimumLogLevel, "All")
    )
  return { within, lines: () => lines }
}

describe("a logger that throws", () => {
  it.effect("keeps no consumer from its start", () => {
    const broker = Scripted.make()
    const { lines, within } = throwing()
    return Effect.gen(function* () {
      const consumer = yield* within(Consumer.start("q", {}, () => {}))
      assert.strictEqual(consumer.stats().state, "running")
      assert.isAbove(lines(), 0)
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("keeps no consumer from stopping itself", () => {
    const broker = Scripted.make()
    const { within } = throwing()
    const options = { retry: RetryPolicy.make({ maxRetries: 0 }), deadLetterBudget: { max: 1 } }
    return Effect.gen(function* () {
      const consumer = yield* within(Consumer.start("q", options, () => Effect.fail(new Error("no"))))
      for (const id of ["a", "b"]) broker.deliver(id)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(consumer.stats().state, "stopped")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("ends no attempts to connect", () => {
    const { lines, within } = throwing()
    let failures = 3
    const open = Effect.suspend(() => (failures-- > 0 ? Effect.fail(new Error("refused")) : Effect.succeed("open")))
    const options = { pauses: { first: 0, max: 0 }, message: "not open" }
    return Effect.gen(function* () {
      assert.strictEqual(yield* within(Reconnect.persist(open, options)), "open")
      assert.strictEqual(lines(), 2)
    })
  })

  it.effect("keeps trouble from nobody", () => {
    const { lines, within } = throwing()
    const trouble = Trouble.track("q", () => 0)
    const error = new BrokerError({ broker: "scripted", operation: "consume", reason: "Timeout", detail: "no answer" })
    return Effect.gen(function* () {
      yield* within(Effect.andThen(trouble.tell(error), trouble.over))
      assert.isUndefined(trouble.current())
      assert.strictEqual(lines(), 2)
    })
  })
})
