import { assert, describe, it } from "@effect/vitest"
import { type Broker, BrokerError } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Control from "../src/Control.ts"
import * as VirtualTime from "../src/VirtualTime.ts"
import * as fake from "./fake.ts"

interface Sent {
  /** Counts what is published, from 0. */
  readonly number: number
  /** Milliseconds since the controls began. */
  readonly at: number
}

/** Runs a program with the controls of a broker that takes so many milliseconds for a message, or loses it. */
const withControl = (
  takes: (sent: Sent) => number | "lost" | "refused",
  program: (control: Control.Service, world: { begun: number; reconnect: () => void }) => Effect.Effect<void, unknown>
) =>
  Effect.gen(function* () {
    const begun = yield* Clock.currentTimeMillis
    const fork = Effect.runForkWith(yield* Effect.context())
    let [subscriber, number]: [Broker.SubscribeOptions | undefined, number] = [undefined, 0]
    const service: Broker.Service = {
      ...fake.broker,
      publish: (messages) =>
        Effect.gen(function* () {
          const way = takes({ number: number++, at: (yield* Clock.currentTimeMillis) - begun })
          if (way === "refused") {
            return yield* Effect.fail(
              new BrokerError.BrokerError({ broker: "fake", operation: "publish", reason: "Throttled", detail: "no" })
            )
          }
          if (way === "lost") return
          const arrive = Effect.sync(() => {
            for (const { body, headers, metadata } of messages) {
              subscriber?.onDelivery({ body, headers, metadata, attempts: 1, receipt: undefined })
            }
          })
          fork(Effect.delay(arrive, way))
        }),
      subscribe: (options) => {
        subscriber = options
        return fake.broker.subscribe(options)
      }
    }
    const control = yield* Control.make(service, "control")
    yield* program(control, { begun, reconnect: () => subscriber?.onReconnect(() => true) })
  }).pipe(Effect.scoped, VirtualTime.run, Effect.orDie)

describe("a control", () => {
  it.live("says by how much the latest echo of a window was late, wherever in it it was", () =>
    withControl(
      ({ at }) => (at >= 2000 && at < 2300 ? 500 : 3),
      (control, { begun }) =>
        Effect.gen(function* () {
          yield* Effect.sleep(5000)
          assert.strictEqual(yield* control.lateness(begun + 1000, begun + 1500), 3)
          assert.strictEqual(yield* control.lateness(begun + 1000, begun + 2050), 500)
          assert.strictEqual(yield* control.lateness(begun + 2400, begun + 2450), 500)
          assert.strictEqual(yield* control.lateness(begun + 3000, begun + 4000), 3)
        })
    )
  )

  it.live("waits for the echoes of the window that are still under way", () =>
    withControl(
      ({ at }) => (at >= 1000 && at < 1100 ? 7000 : 3),
      (control, { begun }) =>
        Effect.gen(function* () {
          yield* Effect.sleep(1200)
          assert.strictEqual(yield* control.lateness(begun + 900, begun + 1200), 7000)
        })
    )
  )

  it.live("excuses nothing when an echo is lost: that fails, in the minute in which it should have come", () =>
    withControl(
      ({ at }) => (at >= 1000 && at < 1100 ? "lost" : 3),
      (control, { begun }) =>
        Effect.gen(function* () {
          yield* Effect.sleep(1200)
          const error = yield* Effect.flip(control.lateness(begun + 900, begun + 1200))
          assert.include(error.message, "did not arrive within 60000 ms")
          assert.isAtLeast((yield* Clock.currentTimeMillis) - begun, 61_000)
          yield* Effect.sleep(10_000)
          const now = yield* Clock.currentTimeMillis
          assert.strictEqual(yield* control.lateness(now - 5000, now), 3)
          assert.isAtMost((yield* Clock.currentTimeMillis) - now, 100)
        })
    )
  )

  it.live("takes no account of the first echo, nor of what a broken connection or a refusal took", () =>
    withControl(
      ({ at, number }) => {
        if (at === 700) throw new Error("a defect of the broker")
        return number === 0 ? 800 : at === 500 ? "refused" : at >= 1000 && at < 1200 ? "lost" : 3
      },
      (control, { begun, reconnect }) =>
        Effect.gen(function* () {
          yield* Effect.sleep(1500)
          reconnect()
          assert.strictEqual(yield* control.lateness(begun, begun + 1500), 3)
        })
    )
  )

  it.live("has a pulse: an echo that began later is back", () =>
    withControl(
      ({ at }) => (at >= 1000 ? 4000 : 3),
      (control, { begun }) =>
        Effect.gen(function* () {
          yield* Effect.sleep(1000)
          yield* control.pulse
          assert.isAtLeast((yield* Clock.currentTimeMillis) - begun, 5000)
        })
    )
  )

  it.live("answers though the time of day is set back meanwhile", () =>
    withControl(
      () => 3,
      (control, { begun }) =>
        Effect.gen(function* () {
          yield* Effect.sleep(1000)
          const asked = yield* Effect.forkChild(control.lateness(begun, begun + 900))
          yield* Effect.yieldNow
          const clock = yield* Clock.Clock
          const told = clock.currentTimeMillisUnsafe.bind(clock)
          clock.currentTimeMillisUnsafe = () => told() - 3_600_000
          const answer = yield* Effect.timeoutOption(Fiber.join(asked), 10_000)
          assert.deepStrictEqual(answer, Option.some(3))
        })
    )
  )

  it.live("sees the event loop of the process stand still, whenever it does", () =>
    Effect.gen(function* () {
      // A broker that refuses all: what is seen is the timer alone.
      const refusal = new BrokerError.BrokerError({
        broker: "fake",
        operation: "publish",
        reason: "Throttled",
        detail: "no"
      })
      const control = yield* Control.make({ ...fake.broker, publish: () => Effect.fail(refusal) }, "control")
      const asleep = new Int32Array(new SharedArrayBuffer(4))
      // A timer of each 10 ms.
      for (let turn = 0; turn < 10; turn++) {
        yield* Effect.sleep(20 + turn)
        const from = Date.now()
        Atomics.wait(asleep, 0, 0, 60)
        assert.isAtLeast(yield* control.lateness(from, Date.now()), 40, `stall ${turn}`)
      }
    }).pipe(Effect.scoped)
  )
})

it.effect("without a suite there are no controls, and nothing is late", () =>
  Effect.gen(function* () {
    const control = yield* Control.Control
    assert.strictEqual(yield* control.lateness(0, 1), 0)
    yield* control.pulse
  })
)
