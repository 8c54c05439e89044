import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import * as Reconnecting from "../src/Reconnecting.ts"

interface Driver {
  readonly name: number
  isOpen: boolean
  readonly gone: Deferred.Deferred<void>
}

const cut = (driver: Driver) =>
  Effect.sync(() => {
    driver.isOpen = false
    Deferred.doneUnsafe(driver.gone, Exit.void)
  })

/** A server that refuses as many connections as it is told to. */
const server = (refusals = 0) => {
  const [opened, closed, changes]: [Array<number>, Array<number>, Array<number | undefined>] = [[], [], []]
  const control = { refusals, attempts: 0 }
  const connect = Effect.suspend(() => {
    control.attempts++
    if (control.refusals > 0) return Effect.fail(new Error(`refused, ${--control.refusals} to come`))
    const driver: Driver = { name: opened.length, isOpen: true, gone: Deferred.makeUnsafe<void>() }
    opened.push(driver.name)
    return Effect.succeed(driver)
  })
  const options: Reconnecting.Options<Driver, Error> = {
    connect,
    isOpen: ({ isOpen }) => isOpen,
    ended: ({ gone }) => Deferred.await(gone),
    close: (driver) =>
      Effect.andThen(
        Effect.sync(() => closed.push(driver.name)),
        cut(driver)
      ),
    pauses: { first: 100, max: 1000 },
    annotations: {},
    onChange: (driver) => changes.push(driver?.name)
  }
  return { control, options, opened, closed, changes }
}

describe("Reconnecting", () => {
  it.effect("goes on where the logger throws", () =>
    Effect.gen(function* () {
      const { control, options, opened } = server()
      const connection = yield* Reconnecting.make(options)
      yield* connection.tried
      for (const next of [1, 2]) {
        control.refusals = 1
        Deferred.doneUnsafe((yield* connection.live).gone, Exit.void)
        yield* TestClock.adjust(5000)
        assert.deepStrictEqual(opened.at(-1), next)
      }
    }).pipe(
      Effect.scoped,
      Effect.provideService(References.MinimumLogLevel, "All"),
      Effect.provideService(References.CurrentLoggers, new Set([Logger.make(() => assert.fail("the disk is full"))]))
    )
  )

  it.effect("tells the last error while there is no connection", () =>
    Effect.gen(function* () {
      const { control, options } = server(2)
      const connection = yield* Reconnecting.make(options)
      yield* Effect.exit(connection.tried)
      assert.strictEqual(connection.error()?.message, "refused, 1 to come")
      yield* TestClock.adjust(5000)
      const { gone } = yield* connection.live
      assert.isUndefined(connection.error())
      control.refusals = 1
      Deferred.doneUnsafe(gone, Exit.void)
      yield* TestClock.adjust(50)
      assert.strictEqual(connection.error()?.message, "refused, 0 to come")
    })
  )

  it.effect("is made again when it ends, and closed with the scope", () =>
    Effect.gen(function* () {
      const { changes, closed, opened, options } = server()
      const scope = yield* Scope.make()
      const connection = yield* Scope.provide(Reconnecting.make(options), scope)
      const first = yield* connection.live
      yield* TestClock.adjust(5000)
      first.isOpen = false
      assert.isUndefined(connection.current())
      yield* cut(first)
      assert.strictEqual((yield* connection.live).name, 1)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual({ opened, closed }, { opened: [0, 1], closed: [1] })
      assert.deepStrictEqual(changes, [0, undefined, 1, undefined])
    })
  )

  it.effect("tells of the first attempt, and goes on", () =>
    Effect.gen(function* () {
      const { control, options } = server(2)
      const connection = yield* Reconnecting.make(options)
      assert.strictEqual((yield* Effect.flip(connection.tried)).message, "refused, 1 to come")
      const live = yield* Effect.forkChild(connection.live)
      yield* TestClock.adjust(49)
      assert.strictEqual(control.attempts, 1)
      yield* TestClock.adjust(1000)
      assert.strictEqual((yield* Fiber.join(live)).name, 0)
      assert.strictEqual(control.attempts, 3)
    })
  )

  it.effect("a wait that ends with a connection that has already ended can wait for the next one", () =>
    Effect.gen(function* () {
      const { options } = server()
      let reports = 0
      const connection = yield* Reconnecting.make({
        ...options,
        onChange: (driver) => {
          if (driver?.name === 0) driver.isOpen = false
        }
      })
      const use = Effect.gen(function* () {
        while (connection.current() === undefined) {
          const { gone } = yield* connection.live
          assert.isAtMost(++reports, 2)
          Deferred.doneUnsafe(gone, Exit.void)
        }
      })
      const used = yield* Effect.forkChild(use, { startImmediately: true })
      yield* TestClock.adjust(5000)
      yield* Fiber.join(used)
      assert.strictEqual(reports, 2)
    })
  )

  it.effect("a connection that ends at once is not made again at once", () =>
    Effect.gen(function* () {
      const { control, options } = server()
      const connection = yield* Reconnecting.make(options)
      yield* cut(yield* connection.live)
      yield* TestClock.adjust(49)
      assert.strictEqual(control.attempts, 1)
      yield* TestClock.adjust(51)
      assert.strictEqual(control.attempts, 2)
    })
  )

  it.effect("a connection that ends at once after failures is one more of them", () =>
    Effect.gen(function* () {
      const { control, options } = server(6)
      const connection = yield* Reconnecting.make({ ...options, pauses: { first: 100, max: 100_000 } })
      yield* Effect.forkChild(Effect.flatMap(connection.live, cut))
      while (control.attempts < 7) yield* TestClock.adjust(10)
      // Half of 100 ms times 1.5 to the 6th, at least.
      yield* TestClock.adjust(550)
      assert.strictEqual(control.attempts, 7)
      yield* TestClock.adjust(600)
      assert.strictEqual(control.attempts, 8)
    })
  )

  it.effect("one that is open already is the first", () =>
    Effect.gen(function* () {
      const { control, options } = server()
      const initial = yield* options.connect
      const connection = yield* Reconnecting.make({ ...options, initial })
      assert.strictEqual(connection.current(), initial)
      yield* connection.tried
      assert.strictEqual(control.attempts, 1)
    })
  )

  it.effect("what is opened while the scope closes is closed", () =>
    Effect.gen(function* () {
      const { closed, opened, options } = server()
      const scope = yield* Scope.make()
      yield* Scope.provide(Reconnecting.make(options), scope)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(closed, opened)
    })
  )
})
