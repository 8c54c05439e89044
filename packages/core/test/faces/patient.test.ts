import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { TestClock } from "effect/testing"
import { patient } from "../../src/faces/internal/patient.ts"
import * as Broker from "../../src/port/Broker.ts"
import { BrokerError, type Reason } from "../../src/port/BrokerError.ts"

/** A broker that is up after so many attempts. One that `isLazy` opens no connection. */
const starting = (attempts: number, reason: Reason = "ConnectionFailed", isLazy = false, isMisconfigured = false) => {
  const seen = { attempts: 0, open: 0, logged: [] as Array<readonly [at: number, line: string]> }
  const attempt = Effect.gen(function* () {
    seen.attempts++
    yield* Effect.acquireRelease(
      Effect.sync(() => seen.open++),
      () => Effect.sync(() => seen.open--)
    )
    const refused = new BrokerError({
      broker: "test",
      operation: "connect",
      reason,
      detail: "refused",
      remedy: "Start it",
      isMisconfigured
    })
    const reach = seen.attempts >= attempts ? Effect.void : Effect.fail(refused)
    if (isLazy) return { reach } as Partial<Broker.Service> as Broker.Service
    yield* reach
    return {} as Broker.Service
  })
  const logs = Logger.layer([
    Logger.make(({ date, fiber, message }) => {
      const { errorMessage } = fiber.getRef(References.CurrentLogAnnotations)
      seen.logged.push([date.getTime(), `${String(message)}: ${String(errorMessage)}`])
    })
  ])
  const built = (wait: number) =>
    Layer.build(patient(Layer.effect(Broker.Broker, attempt), wait)).pipe(Effect.provide(logs))
  return { built, seen }
}

describe("a broker that starts after the program", () => {
  it.effect("is waited for, which the log says", () =>
    Effect.gen(function* () {
      const { built, seen } = starting(5)
      const build = yield* Effect.forkChild(built(30_000), { startImmediately: true })
      yield* TestClock.adjust("30 seconds")
      yield* Fiber.join(build)
      assert.deepStrictEqual([seen.attempts, seen.open], [5, 1])
      // It was up before a second was over.
      assert.deepStrictEqual(seen.logged, [])
    })
  )

  it.effect(
    "is named in the log after a second, and every 5 seconds, with the last reason and the time that is left",
    () =>
      Effect.gen(function* () {
        const { built, seen } = starting(Number.POSITIVE_INFINITY)
        const build = yield* Effect.forkChild(Effect.flip(built(14_000)), { startImmediately: true })
        yield* TestClock.adjust("20 seconds")
        yield* Fiber.join(build)
        const because = "test: connect: ConnectionFailed: refused. Start it"
        assert.deepStrictEqual(seen.logged, [
          [1000, `waiting for the broker, for 13s more: ${because}`],
          [6000, `waiting for the broker, for 8s more: ${because}`],
          [11_000, `waiting for the broker, for 3s more: ${because}`]
        ])
      })
  )

  it.effect("is named in the log after 6 seconds while the first attempt has no answer", () =>
    Effect.gen(function* () {
      const logged: Array<string> = []
      const logs = Logger.layer([
        Logger.make(
          ({ fiber }) => void logged.push(String(fiber.getRef(References.CurrentLogAnnotations)["errorMessage"]))
        )
      ])
      const silent = patient(Layer.effect(Broker.Broker, Effect.never), 30_000)
      const build = yield* Effect.forkChild(Effect.provide(Layer.build(silent), logs), { startImmediately: true })
      yield* TestClock.adjust("5999 millis")
      assert.deepStrictEqual(logged, [])
      yield* TestClock.adjust("1 milli")
      yield* Fiber.interrupt(build)
      assert.deepStrictEqual(logged, ["the first attempt has no answer yet"])
    })
  )

  it.effect("is waited for no longer than was stated, and the last attempt is at the end", () =>
    Effect.gen(function* () {
      const { built, seen } = starting(Number.POSITIVE_INFINITY)
      const build = yield* Effect.forkChild(Effect.flip(built(10_000)), { startImmediately: true })
      yield* TestClock.adjust("9999 millis")
      const before = seen.attempts
      assert.isUndefined(build.pollUnsafe())
      yield* TestClock.adjust("1 milli")
      assert.strictEqual(
        String(yield* Fiber.join(build)),
        `BrokerError: test: connect: ConnectionFailed: refused (${before + 1} attempts in 10s). Start it. Raise waitForBroker if the broker takes longer to start`
      )
      assert.strictEqual(seen.open, 0)
    })
  )

  it.effect("is waited for as long as was stated when the clock of this machine is set back meanwhile", () =>
    Effect.gen(function* () {
      const { built } = starting(Number.POSITIVE_INFINITY)
      const clock = yield* Clock.Clock
      let times = 0
      const back = () => BigInt(-3_600_000_000_000 * times++)
      const stepping = Object.assign(Object.create(clock) as Clock.Clock, {
        currentTimeNanosUnsafe: back,
        currentTimeNanos: Effect.sync(back)
      })
      const build = yield* Effect.forkChild(Effect.provideService(Effect.flip(built(10_000)), Clock.Clock, stepping), {
        startImmediately: true
      })
      yield* TestClock.adjust("10 seconds")
      assert.isDefined(build.pollUnsafe())
    })
  )

  it.effect("is waited for where it has no connection to open: until it has answered", () =>
    Effect.gen(function* () {
      const { built, seen } = starting(5, "ConnectionFailed", true)
      const build = yield* Effect.forkChild(built(30_000), { startImmediately: true })
      yield* TestClock.adjust("100 millis")
      assert.isUndefined(build.pollUnsafe())
      yield* TestClock.adjust("30 seconds")
      yield* Fiber.join(build)
      assert.deepStrictEqual([seen.attempts, seen.open], [5, 1])
    })
  )

  it.effect("is not asked for an answer where nobody waits", () =>
    Effect.gen(function* () {
      const { built } = starting(2, "ConnectionFailed", true)
      yield* built(0)
    })
  )

  it.effect("is not waited for where another attempt cannot help", () =>
    Effect.gen(function* () {
      const { built, seen } = starting(2, "AccessRefused")
      assert.include(String(yield* Effect.flip(built(10_000))), "AccessRefused: refused. Start it")
      assert.strictEqual(seen.attempts, 1)
    })
  )

  it.effect("is not waited for where only another configuration helps", () =>
    Effect.gen(function* () {
      const { built, seen } = starting(2, "ConnectionFailed", false, true)
      assert.match(String(yield* Effect.flip(built(10_000))), /ConnectionFailed: refused\. Start it$/)
      assert.strictEqual(seen.attempts, 1)
    })
  )
})
