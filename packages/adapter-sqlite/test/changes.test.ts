/** When a commit of another process is noticed. */
import { Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { assert, describe, it } from "vitest"
import { watch } from "../src/internal/connect/changes.ts"
import * as VirtualDriver from "./driver.ts"
import { run } from "./program.ts"

/** A watched file whose version changes a given time after each report. */
const watched = Effect.gen(function* () {
  const timers = yield* Timers.make
  const driver = VirtualDriver.make()
  const seen: Array<number> = []
  let [version, isAwaited] = [0, true]
  const start = timers.now()
  const unwatch = watch({
    path: "file",
    driver,
    timers,
    beats: timers,
    version: () => version,
    onChange: () => seen.push(Math.round(timers.now() - start)),
    isAwaited: () => isAwaited,
    onBeat: () => {}
  })
  const setAwaited = (value: boolean): void => {
    isAwaited = value
  }
  const commit = (delay: number) => timers.after(delay, () => version++)
  return { commit, setAwaited, report: () => driver.notify("file"), seen, unwatch }
})

describe("a commit of another process", () => {
  it.each([
    ["before the report", 0, 0],
    ["soon after the report", 2, 4],
    ["while the disk is slow", 300, 300]
  ])("is noticed that is visible %s", (_, delay, slack) =>
    run(
      Effect.gen(function* () {
        const { commit, report, seen, unwatch } = yield* watched
        if (delay === 0) commit(0)
        yield* Effect.sleep(1)
        report()
        if (delay > 0) commit(delay)
        yield* Effect.sleep(2000)
        assert.strictEqual(seen.length, 1)
        assert.isAtMost(seen[0]!, 1 + delay + slack)
        unwatch()
      })
    )
  )

  it("is noticed after an earlier one that was reported with it", () =>
    run(
      Effect.gen(function* () {
        const { commit, report, seen, unwatch } = yield* watched
        report()
        commit(1)
        commit(20)
        yield* Effect.sleep(2000)
        assert.strictEqual(seen.length, 2)
        unwatch()
      })
    ))

  it("is noticed by the next check that has a use", () =>
    run(
      Effect.gen(function* () {
        const { commit, report, seen, setAwaited, unwatch } = yield* watched
        setAwaited(false)
        commit(0)
        yield* Effect.sleep(1)
        report()
        yield* Effect.sleep(100)
        assert.deepStrictEqual(seen, [])
        setAwaited(true)
        yield* Effect.sleep(2000)
        assert.strictEqual(seen.length, 1)
        unwatch()
      })
    ))
})
