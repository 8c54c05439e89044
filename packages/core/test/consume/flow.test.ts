import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as Timers from "../../src/runtime/Timers.ts"
import type { Subscription } from "../../src/port/Broker.ts"
import * as Flow from "../../src/consume/internal/flow.ts"
import * as ConsumerBackoff from "../../src/policy/ConsumerBackoff.ts"
import { plain } from "../scripted.ts"

const dead: Subscription = {
  credit: () => {},
  settle: () => Effect.succeed([]),
  extend: () => Effect.succeed([]),
  identify: () => undefined
}

const start = Effect.fnUntraced(function* (most = 5) {
  const timers = yield* Timers.make
  const given: Array<number> = []
  const load = { inFlight: 0, lost: 0, kept: 0, held: 0, unbegun: 0, suspects: 0 }
  const suspects = { isAlone: false, isThrottled: false }
  const window = { now: most }
  const flow = Flow.make({
    policy: ConsumerBackoff.nsq(),
    capabilities: plain,
    outlet: { subscription: { ...dead, credit: (limit) => void given.push(limit) } },
    window: () => window.now,
    timers,
    random: () => 0,
    wallClock: () => 0,
    onChange: () => flow.update(),
    onTransition: () => {},
    onDefect: (error) => assert.fail(String(error))
  })
  flow.connect({
    deliveries: { counts: load },
    batcher: { size: () => load.unbegun, suspects: () => load.suspects },
    groups: { behind: () => 0 },
    arrival: { decoding: () => 0 },
    suspects
  })
  flow.update()
  return { flow, given, load, suspects, take: () => given.splice(0), window }
})

const failed = { _tag: "Failed", id: "a" } as const

describe("credit", () => {
  it.effect("is given when it changes", () =>
    Effect.gen(function* () {
      const { flow, take, window } = yield* start()
      flow.update()
      window.now = 0
      flow.update()
      assert.deepStrictEqual(take(), [5, 0])
    })
  )

  it.effect("of a new connection is given once, after the recovery, though it is what the lost one had", () =>
    Effect.gen(function* () {
      const { flow, take, window } = yield* start()
      take()
      flow.renew(() => {
        window.now = 7
        flow.update()
        window.now = 5
        flow.update()
        assert.deepStrictEqual(take(), [])
      })
      assert.deepStrictEqual(take(), [5])
    })
  )

  it.effect("leaves room for what a lost connection's handlers still have", () =>
    Effect.gen(function* () {
      const { flow, load, take } = yield* start()
      load.inFlight = load.lost = 2
      flow.update()
      assert.deepStrictEqual(take(), [5, 3])
    })
  )

  it.effect("is more by what is kept, up to a bound", () =>
    Effect.gen(function* () {
      const { flow, load, take } = yield* start()
      for (const kept of [1, 100, 5000]) {
        load.inFlight = load.kept = kept
        flow.update()
      }
      assert.deepStrictEqual(take(), [5, 6, 105])
    })
  )

  it.effect("takes nothing more while messages must run alone", () =>
    Effect.gen(function* () {
      const { flow, load, suspects, take } = yield* start()
      load.inFlight = load.unbegun = 3
      load.suspects = 1
      flow.update()
      assert.deepStrictEqual(take(), [5, 0])
      load.suspects = 0
      suspects.isAlone = true
      flow.update()
      assert.deepStrictEqual(take(), [])
    })
  )

  it.effect("takes one more after a message that had to run alone", () =>
    Effect.gen(function* () {
      const { flow, load, suspects, take } = yield* start()
      suspects.isThrottled = true
      for (const inFlight of [0, 1, 3, 8]) {
        load.inFlight = inFlight
        flow.update()
      }
      assert.deepStrictEqual(take(), [5, 1, 2, 4, 5])
    })
  )

  it.effect("is held back by the broker when kept messages have taken all room", () =>
    Effect.gen(function* () {
      const { flow, load } = yield* start()
      load.inFlight = load.kept = 104
      assert.deepStrictEqual(flow.backoff(), [])
      load.inFlight = load.kept = 105
      assert.deepStrictEqual(flow.backoff(), [{ because: "broker", state: "paused", level: 0, until: undefined }])
    })
  )
})

describe("a probe", () => {
  it.effect("does not wait for messages that handlers have already", () =>
    Effect.gen(function* () {
      const { flow, load, take } = yield* start()
      load.inFlight = 3
      flow.handler.signal(failed)
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual(take(), [5, 0, 4])
      assert.deepStrictEqual([flow.mayStart(), flow.batchLimit()], [true, 1])
      flow.onStart("b")
      load.inFlight = 4
      flow.update()
      assert.deepStrictEqual([take(), flow.mayStart()], [[0], false])
    })
  )

  it.effect("of the broker is a settlement that it did not take before, if there is one", () =>
    Effect.gen(function* () {
      const { flow, load, take } = yield* start()
      load.inFlight = load.held = 1
      flow.broker.signal(failed)
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual([take(), flow.mayStart()], [[5, 0], false])
      load.inFlight = load.held = 0
      flow.update()
      assert.deepStrictEqual([take(), flow.mayStart(), flow.batchLimit()], [[1], true, 1])
      // One with a slow handler holds up nobody; the first settlement that is sent is the probe.
      load.inFlight = 1
      flow.update()
      assert.deepStrictEqual([take(), flow.mayStart()], [[2], true])
      flow.broker.signal({ _tag: "Started", id: "b" })
      flow.update()
      assert.deepStrictEqual([take(), flow.mayStart()], [[0], false])
    })
  )
})

describe("pause and resume", () => {
  it.effect("take the credit away and give it again, and start nothing in between", () =>
    Effect.gen(function* () {
      const { flow, take } = yield* start()
      flow.pause()
      flow.pause()
      assert.deepStrictEqual([take(), flow.mayStart()], [[5, 0], false])
      assert.deepStrictEqual(flow.backoff(), [{ because: "operator", state: "paused", level: 0, until: undefined }])
      // What was on its way already waits for the end of the pause.
      assert.isTrue(flow.wants())
      flow.resume()
      assert.deepStrictEqual([take(), flow.mayStart(), flow.backoff()], [[5], true, []])
    })
  )

  it.effect("do nothing once it is closed", () =>
    Effect.gen(function* () {
      const { flow, take } = yield* start()
      flow.close()
      flow.resume()
      flow.update()
      assert.deepStrictEqual(take(), [5, 0])
    })
  )
})
