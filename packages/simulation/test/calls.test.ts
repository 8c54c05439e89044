/** Calls: what becomes of requests and answers under each fault. */
import { assert, describe, it } from "@effect/vitest"
import * as Generate from "../src/Generate.ts"
import * as Calls from "../src/world/Calls.ts"
import * as Machine from "../src/world/Machine.ts"
import * as World from "../src/world/World.ts"

const second = 1000

/** A world in which exactly these faults happen. */
const begin = (only: ReadonlyArray<string> = [], seed = 1) => {
  const world = World.make({ ...Generate.scenario(seed, ["push"]), latency: 1, calmAt: 1e9, only })
  const pass = (millis: number): void => {
    const until = world.now() + millis
    world.after(millis, () => {})
    while (world.step(until)) continue
  }
  return { world, calls: Calls.make(world), pass }
}

type Begun = ReturnType<typeof begin>

describe("a call", () => {
  /** Makes a call that acts once, or each time it is made, and tells when it acted and how it ended. */
  const call = (only: ReadonlyArray<string>, prepare: (begun: Begun) => void = () => {}, repeats = true) => {
    const begun = begin(only)
    const acts: Array<number> = []
    const ends: Array<readonly [at: number, outcome: Calls.Outcome<string>]> = []
    const machine = Machine.make(begun.world, "a1", Machine.trueClock)
    prepare(begun)
    begun.calls.make<string>({
      machine,
      place: "here",
      timeout: 10 * second,
      repeats,
      act: (answer) => {
        acts.push(begun.world.now())
        answer("done")
      },
      onEnd: (outcome) => void ends.push([begun.world.now(), outcome])
    })
    begun.pass(60 * second)
    return { acts, ends, outcomes: ends.map(([, outcome]) => outcome) }
  }

  it("acts, and is answered", () => {
    const { acts, outcomes } = call([])
    assert.strictEqual(acts.length, 1)
    assert.deepStrictEqual(outcomes, [{ value: "done" }])
  })

  it("does nothing when its request is lost, and has acted when its answer is; nobody can tell", () => {
    for (const [fault, count] of [
      ["lostRequest", 0],
      ["lostAnswer", 1]
    ] as const) {
      const { acts, ends } = call([`${fault} here 1`])
      assert.strictEqual(acts.length, count)
      assert.deepStrictEqual(ends, [[10 * second, { failure: "Timeout" }]])
    }
  })

  it("acts late, perhaps when nobody waits any more", () => {
    const lateness = Array.from({ length: 20 }, (_, nth) => {
      const begun = begin(["late here 1"], nth)
      let [actedAt, end]: [number, unknown] = [0, undefined]
      begun.calls.make<undefined>({
        machine: Machine.make(begun.world, "a1", Machine.trueClock),
        place: "here",
        timeout: 10 * second,
        repeats: true,
        act: (answer) => {
          actedAt = begun.world.now()
          answer(undefined)
        },
        onEnd: (outcome) => void (end = outcome)
      })
      begun.pass(60 * second)
      return [actedAt > 10 * second, end] as const
    })
    for (const [isLate, end] of lateness) {
      assert.deepStrictEqual(end, isLate ? { failure: "Timeout" } : { value: undefined })
    }
    assert.deepStrictEqual(new Set(lateness.map(([isLate]) => isLate)), new Set([true, false]))
  })

  it("is made again by the driver when its first request had no answer, unless it must not be", () => {
    const { acts, outcomes } = call(["twice here 1"])
    assert.strictEqual(acts.length, 2)
    assert.deepStrictEqual(outcomes, [{ value: "done" }])
    assert.strictEqual(call(["twice here 1"], undefined, false).acts.length, 1)
  })

  it("ends at once when its connection is cut, whether it has acted or not", () => {
    const { ends, outcomes } = call(["cut here 1"])
    assert.deepStrictEqual(outcomes, [{ failure: "ConnectionLost" }])
    assert.isBelow(ends[0]![0], second)
  })

  it("is refused, and does nothing, when the server is busy", () => {
    for (const throttled of [call(["busy here 1"]), call([], ({ calls }) => calls.throttle(second))]) {
      assert.deepStrictEqual([throttled.acts, throttled.outcomes], [[], [{ failure: "Throttled" }]])
    }
  })

  it("fails at once while the server is down, and when it goes down", () => {
    assert.deepStrictEqual(call([], ({ calls }) => calls.restart(second)).outcomes, [{ failure: "ConnectionFailed" }])
    const { acts, outcomes } = call([], ({ calls, world }) => void world.after(0, () => calls.restart(second)))
    assert.deepStrictEqual([acts, outcomes], [[], [{ failure: "ConnectionLost" }]])
  })
})
