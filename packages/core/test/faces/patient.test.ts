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
import * as Log from "../../src/port/Log.ts"

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
    Layer.build(patient(Layer.effect(Broker.Broker, attempt), wait, "test")).pipe(Effect.provide(logs))
  return { built, seen }
}

const because = "test: connect: ConnectionFailed: refused. Start it"

/** A broker whose adapter logs a line with each attempt, which `attempt` ends. */
const logging = (attempt: Effect.Effect<void, BrokerError>) => {
  const logged: Array<string> = []
  const logs = Logger.layer([
    Logger.make(({ fiber, message }) => {
      const { errorMessage, nsqd } = fiber.getRef(References.CurrentLogAnnotations)
      logged.push(`${String(message)}: ${String(errorMessage ?? nsqd)}`)
    })
  ])
  let attempts = 0
  const broker = Effect.gen(function* () {
    yield* Log.warning("not connected", { nsqd: ++attempts })
    yield* attempt
    yield* Effect.forkDetach(Effect.andThen(Effect.sleep("1 minute"), Log.warning("lost", { nsqd: 1 })))
    return {} as Broker.Service
  })
  const built = (wait: number) =>
    Layer.build(patient(Layer.effect(Broker.Broker, broker), wait, "amqp")).pipe(Effect.provide(logs))
  return { built, logged }
}

const refused = new BrokerError({ broker: "test", operation: "connect", reason: "ConnectionFailed", detail: "refused" })

describe("a broker that starts after the program", () => {
  it.effect("is waited for, which the log says at once", () =>
    Effect.gen(function* () {
      const { built, seen } = starting(5)
      const build = yield* Effect.forkChild(built(30_000), { startImmediately: true })
      yield* TestClock.adjust("30 seconds")
      yield* Fiber.join(build)
      assert.deepStrictEqual([seen.attempts, seen.open], [5, 1])
      assert.deepStrictEqual(seen.logged, [[0, `waiting for the broker, for 30s more: ${because}`]])
    })
  )

  it.effect("is named in the log every 5 seconds, with the last reason and the time that is left", () =>
    Effect.gen(function* () {
      const { built, seen } = starting(Number.POSITIVE_INFINITY)
      const build = yield* Effect.forkChild(Effect.flip(built(14_000)), { startImmediately: true })
      yield* TestClock.adjust("20 seconds")
      yield* Fiber.join(build)
      assert.deepStrictEqual(seen.logged, [
        [0, `waiting for the broker, for 14s more: ${because}`],
        [5000, `waiting for the broker, for 9s more: ${because}`],
        [10_000, `waiting for the broker, for 4s more: ${because}`]
      ])
    })
  )

  it.effect("is named in the log after 5 seconds while the first attempt has no answer", () =>
    Effect.gen(function* () {
      const { built, logged } = logging(Effect.never)
      const build = yield* Effect.forkChild(built(30_000), { startImmediately: true })
      yield* TestClock.adjust("4999 millis")
      assert.deepStrictEqual(logged, [])
      yield* TestClock.adjust("1 milli")
      assert.deepStrictEqual(logged, ["waiting for the broker, for 25s more: the first attempt has no answer yet"])
      yield* Fiber.interrupt(build)
    })
  )

  it.effect("is waited for without the lines that the adapter writes with each attempt, but for the last one", () =>
    Effect.gen(function* () {
      let left = 5
      const { built, logged } = logging(Effect.suspend(() => (left-- > 0 ? Effect.fail(refused) : Effect.void)))
      const build = yield* Effect.forkChild(built(30_000), { startImmediately: true })
      yield* TestClock.adjust("4 seconds")
      yield* Fiber.join(build)
      const waiting = "waiting for the broker, for 30s more: test: connect: ConnectionFailed: refused"
      assert.deepStrictEqual(logged, [waiting, "not connected: 6"])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(logged, [waiting, "not connected: 6", "lost: 1"])
    })
  )

  it.effect("is waited for no longer than was stated", () =>
    Effect.gen(function* () {
      const { built, seen } = starting(Number.POSITIVE_INFINITY)
      const build = yield* Effect.forkChild(Effect.flip(built(10_000)), { startImmediately: true })
      yield* TestClock.adjust("9900 millis")
      const late = seen.attempts
      yield* TestClock.adjust("99 millis")
      assert.isUndefined(build.pollUnsafe())
      yield* TestClock.adjust("1 milli")
      assert.isAbove(seen.attempts, late, "the last attempt is near the end")
      assert.strictEqual(
        String(yield* Fiber.join(build)),
        `BrokerError: test: connect: ConnectionFailed: refused (${seen.attempts} attempts in 10s). Start it. Raise waitForBroker if the broker takes longer to start`
      )
      assert.strictEqual(seen.open, 0)
    })
  )

  it.effect.each([
    [
      "that has not answered",
      [],
      "amqp: connect: ConnectionFailed: no answer (1 attempt in 1s). Check the host and port of the URL."
    ],
    ["that answers no longer", [refused], "test: connect: ConnectionFailed: refused (2 attempts in 1s)."]
  ] as const)("is waited for no longer by an attempt %s and cannot be interrupted", ([, errors, expected]) =>
    Effect.gen(function* () {
      const rest = errors.map((error) => Effect.fail(error)).values()
      const attempt = Effect.suspend((): Effect.Effect<void, BrokerError> => rest.next().value ?? Effect.never)
      const { built } = logging(Effect.uninterruptible(attempt))
      const build = yield* Effect.forkChild(Effect.flip(built(1000)), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      const raise = "Raise waitForBroker if the broker takes longer to start"
      assert.strictEqual(String(yield* Fiber.join(build)), `BrokerError: ${expected} ${raise}`)
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
