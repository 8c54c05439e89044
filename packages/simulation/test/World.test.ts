/** The world: what is due happens in order, and the same seed makes the same. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import * as Generate from "../src/Generate.ts"
import * as Draw from "../src/world/Draw.ts"
import * as Machine from "../src/world/Machine.ts"
import * as World from "../src/world/World.ts"

const { trueClock } = Machine
const empty = { ...Generate.scenario(1), sendings: [], operations: [], processes: [], refusals: [], calmAt: 1000 }

const finish = (world: World.World, until = 1e9): void => {
  while (world.step(until)) continue
}

describe("a world", () => {
  it("lets things happen by their time, and those of one time in the order in which they were asked for", () =>
    fc.assert(
      fc.property(fc.array(fc.nat(20)), (delays) => {
        const world = World.make(empty)
        const seen: Array<readonly [number, number]> = []
        for (const [index, delay] of delays.entries()) world.after(delay, () => seen.push([world.now(), index]))
        finish(world)
        const expected = delays.map((delay, index) => [delay, index] as const)
        assert.deepStrictEqual(
          seen,
          expected.toSorted(([one, first], [other, second]) => one - other || first - second)
        )
      })
    ))

  it("does not let happen what was called off", () => {
    const world = World.make(empty)
    const due = world.after(5, () => assert.fail("it was called off"))
    due.run = undefined
    finish(world)
    assert.strictEqual(world.now(), 0)
  })

  it("makes no fault once it is calm, and exactly the wanted ones where they are named", () => {
    const rates = { ...empty.rates, cut: 1 }
    const wild = World.make({ ...empty, rates })
    assert.isTrue(wild.fault("cut", "here"))
    wild.after(1000, () => assert.isFalse(wild.fault("cut", "here")))
    finish(wild)
    const named = World.make({ ...empty, rates, only: ["cut here 2"] })
    assert.deepStrictEqual(
      [1, 2, 3].map(() => named.fault("cut", "here")),
      [false, true, false]
    )
  })
})

describe("draws", () => {
  it("depend on the place and on how often it asked, not on other places", () =>
    fc.assert(
      fc.property(fc.integer(), fc.array(fc.constantFrom("a", "b", "c")), (seed, places) => {
        const all = Draw.make(seed)
        const mixed = places.map((place) => [place, all.unit(place)] as const)
        const alone = Draw.make(seed)
        const ofA = places.filter((place) => place === "a").map((place) => [place, alone.unit(place)] as const)
        assert.deepStrictEqual(
          mixed.filter(([place]) => place === "a"),
          ofA
        )
      })
    ))

  it("are spread evenly", () => {
    const draw = Draw.make(7)
    const sum = Array.from({ length: 10_000 }, () => draw.unit("place")).reduce((one, other) => one + other, 0)
    assert.approximately(sum / 10_000, 0.5, 0.02)
  })
})

describe("a machine", () => {
  const woken = (act: (machine: Machine.Machine, world: World.World) => void, clock = trueClock) => {
    const world = World.make(empty)
    const machine = Machine.make(world, "a1", clock)
    const seen: Array<number> = []
    machine.run(
      Effect.andThen(
        Effect.sleep(100),
        Effect.sync(() => void seen.push(world.now()))
      )
    )
    act(machine, world)
    finish(world)
    return seen
  }

  it("wakes its sleepers", () =>
    assert.deepStrictEqual(
      woken(() => {}),
      [100]
    ))

  it("does nothing once it is killed", () =>
    assert.deepStrictEqual(
      woken((machine, world) => void world.after(50, machine.kill)),
      []
    ))

  it("does what was due while it was frozen when that ends", () =>
    assert.deepStrictEqual(
      woken((machine, world) => void world.after(50, () => machine.freeze(500))),
      [550]
    ))

  it("has clocks of its own", () => {
    const clock = { offset: 5000, speed: 2, jumps: [{ at: 10, by: -60_000 }] }
    const walls: Array<number> = []
    const seen = woken((machine, world) => {
      walls.push(machine.wallClock() - Machine.epoch)
      world.after(20, () => walls.push(machine.wallClock() - Machine.epoch))
    }, clock)
    assert.deepStrictEqual([seen, walls], [[50], [5000, 5000 + 40 - 60_000]])
  })
})
