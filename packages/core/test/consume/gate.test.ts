import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as ConsumerBackoff from "../../src/policy/ConsumerBackoff.ts"
import type { Backoff } from "../../src/observe/Health.ts"
import { Gate, strictest } from "../../src/consume/internal/flow.ts"
import * as Timers from "../../src/runtime/Timers.ts"

const start = Effect.fnUntraced(function* (policy = ConsumerBackoff.nsq()) {
  const timers = yield* Timers.make
  const seen: Array<string> = []
  const gate: Gate = new Gate(policy, "handler", {
    timers,
    wallClock: () => 1_000_000 + timers.now(),
    random: () => 0,
    onChange: () => seen.push(`credit ${gate.allowance}`),
    onTransition: (_, before, after) => seen.push(`${before.mode._tag} to ${after.mode._tag}`)
  })
  const take = () => seen.splice(0)
  return { gate, take }
})

describe("gate", () => {
  it.effect("closes for the pause, lets one through, and opens again", () =>
    Effect.gen(function* () {
      const { gate, take } = yield* start()
      assert.deepStrictEqual([gate.allowance, gate.mayStart(), gate.backoff()], ["full", true, undefined])
      gate.signal({ _tag: "Failed", id: "a" })
      assert.deepStrictEqual([gate.allowance, gate.mayStart(), gate.backoff()?.level], ["none", false, 1])
      yield* TestClock.adjust(1999)
      assert.deepStrictEqual(take(), ["Running to Paused", "credit none"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(take(), ["Paused to Probing", "credit one"])
      assert.isTrue(gate.mayStart())
      gate.signal({ _tag: "Started", id: "b" })
      assert.isFalse(gate.mayStart())
      assert.deepStrictEqual(take(), [])
      gate.signal({ _tag: "Succeeded", id: "b" })
      assert.deepStrictEqual(take(), ["Probing to Running", "credit full"])
      assert.deepStrictEqual([gate.mayStart(), gate.backoff()], [true, undefined])
    })
  )

  it.effect("a second failure in the same pause neither lengthens nor doubles it", () =>
    Effect.gen(function* () {
      const { gate, take } = yield* start()
      gate.signal({ _tag: "Failed", id: "a" })
      yield* TestClock.adjust(1000)
      gate.signal({ _tag: "Failed", id: "b" })
      yield* TestClock.adjust(1000)
      yield* TestClock.adjust(10_000)
      assert.deepStrictEqual(take(), ["Running to Paused", "credit none", "Paused to Probing", "credit one"])
    })
  )

  it.effect("a reconnection does not cut a pause short", () =>
    Effect.gen(function* () {
      const { gate } = yield* start()
      gate.signal({ _tag: "Failed", id: "a" })
      gate.signal({ _tag: "Reconnected" })
      yield* TestClock.adjust(1999)
      assert.strictEqual(gate.allowance, "none")
      yield* TestClock.adjust(1)
      assert.strictEqual(gate.allowance, "one")
    })
  )

  it.effect("closed, it wakes no more", () =>
    Effect.gen(function* () {
      const { gate, take } = yield* start()
      gate.signal({ _tag: "Failed", id: "a" })
      take()
      gate.close()
      yield* TestClock.adjust(10_000)
      assert.deepStrictEqual(take(), [])
    })
  )

  it.effect("turned off, it is always open", () =>
    Effect.gen(function* () {
      const { gate, take } = yield* start(ConsumerBackoff.off)
      gate.signal({ _tag: "Failed", id: "a" })
      assert.deepStrictEqual([gate.allowance, gate.mayStart(), take()], ["full", true, []])
    })
  )

  it.effect("a pause of 0 ms goes on to the probe", () =>
    Effect.gen(function* () {
      const { gate } = yield* start(ConsumerBackoff.nsq({ strategy: "full-jitter" }))
      gate.signal({ _tag: "Failed", id: "a" })
      yield* TestClock.adjust(1)
      assert.strictEqual(gate.allowance, "one")
    })
  )
})

it("of several backoffs the strictest one counts", () => {
  const paused: Backoff = { because: "handler", state: "paused", level: 1, until: 0 }
  const probing: Backoff = { ...paused, state: "probing" }
  const running: Backoff = { ...paused, state: "running" }
  assert.deepStrictEqual([[], [running], [running, probing], [probing, paused]].map(strictest), [
    "running",
    "running",
    "probing",
    "paused"
  ])
})
