import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { distributeRdy, type Demand } from "../src/internal/consume/distributeRdy.ts"
import * as Credit from "../src/internal/consume/credit.ts"

const demand = (change: Partial<Demand> = {}): Demand => ({
  inFlight: 0,
  isBusy: false,
  waited: 0,
  max: 2500,
  ...change
})

describe("distributeRdy", () => {
  it.each([
    ["nothing to give", 0, [{}, {}], [0, 0]],
    ["one connection", 7, [{}], [7]],
    ["an even split, the rest to the first", 7, [{}, {}], [4, 3]],
    ["a probe: one on one connection", 1, [{}, {}, {}], [1, 0, 0]],
    ["a probe goes to who waited longest", 1, [{}, { waited: 3 }, { waited: 1 }], [0, 1, 0]],
    ["less than there are connections", 2, [{ waited: 1 }, {}, { waited: 2 }], [1, 0, 1]],
    ["most to who is busy", 10, [{ isBusy: true }, {}], [9, 1]],
    ["evenly among the busy", 11, [{ isBusy: true, inFlight: 4 }, { isBusy: true }, {}], [5, 5, 1]],
    ["no more than nsqd takes", 10, [{ max: 3 }, {}], [3, 5]],
    ["what is in flight counts", 2, [{ inFlight: 2, isBusy: true, waited: 5 }, {}], [2, 0]],
    ["too much in flight", 3, [{ inFlight: 2 }, { inFlight: 2 }], [0, 0]],
    ["all in flight", 4, [{ inFlight: 1 }, { inFlight: 3 }], [1, 3]]
  ] as const)("%s", (_, credit, members, expected) =>
    assert.deepStrictEqual(
      distributeRdy(
        credit,
        members.map((each) => demand(each))
      ),
      [...expected]
    )
  )

  const members = fc.array(
    fc.record({
      inFlight: fc.nat(20),
      isBusy: fc.boolean(),
      waited: fc.nat(5),
      max: fc.integer({ min: 1, max: 30 })
    }),
    { minLength: 1, maxLength: 8 }
  )

  it("never lets more be in flight than the credit", () =>
    fc.assert(
      fc.property(fc.nat(100), members, (credit, all) => {
        const shares = distributeRdy(credit, all)
        const held = all.reduce((sum, { inFlight }) => sum + inFlight, 0)
        const reach = shares.reduce((sum, share, index) => sum + Math.max(share, all[index]!.inFlight), 0)
        assert.isAtMost(reach, Math.max(credit, held))
        assert.isAtMost(
          shares.reduce((sum, share) => sum + share, 0),
          credit
        )
        assert.isTrue(shares.every((share, index) => Number.isInteger(share) && share >= 0 && share <= all[index]!.max))
      })
    ))

  it("lets nobody go unheard while there is enough, and wastes nothing", () =>
    fc.assert(
      fc.property(fc.nat(100), members, (credit, some) => {
        const all = some.map((each) => ({ ...each, max: 2500 }))
        const held = all.reduce((sum, { inFlight }) => sum + inFlight, 0)
        const shares = distributeRdy(credit, all)
        if (credit - held >= all.length) {
          assert.isTrue(shares.every((share, index) => share > all[index]!.inFlight))
        }
        if (credit >= held) {
          assert.strictEqual(
            shares.reduce((sum, share) => sum + share, 0),
            credit
          )
        }
      })
    ))
})

/** A credit of 0 whose clock goes on by a pause with each tick. */
const ticking = (): Credit.Credit & { readonly now: () => number } => {
  let now = 0
  const credit = Credit.make(() => now)
  return {
    ...credit,
    now: () => now,
    tick: () => {
      const pause = credit.pause()
      now += Math.min(pause, 50)
      if (pause <= 50) credit.tick()
    }
  }
}

/** An nsqd as far as RDY goes: it pushes while it has messages and less is in flight than it may. */
const nsqd = (credit: Credit.Credit, onPush: () => void) => {
  let rdy = 0
  let backlog = 0
  let inFlight = 0
  const push = (): void => {
    while (backlog > 0 && inFlight < rdy) {
      backlog--
      inFlight++
      handle.arrived()
      onPush()
    }
  }
  const handle = credit.join((share) => {
    rdy = share
    push()
  }, 2500)
  push()
  return {
    put: (count: number) => {
      backlog += count
      push()
    },
    finish: () => {
      if (inFlight === 0) return false
      inFlight--
      handle.settled()
      push()
      return true
    },
    rdy: () => rdy,
    inFlight: () => inFlight,
    backlog: () => backlog,
    lose: () => {
      rdy = 0
      handle.lost()
    }
  }
}

describe("a credit over connections", () => {
  const step = fc.oneof(
    fc.record({ what: fc.constant("put"), on: fc.nat(3), count: fc.integer({ min: 1, max: 20 }) }),
    fc.record({ what: fc.constant("finish"), on: fc.nat(3), count: fc.integer({ min: 1, max: 20 }) }),
    fc.record({ what: fc.constant("credit"), on: fc.constant(0), count: fc.nat(12) }),
    fc.record({ what: fc.constant("tick"), on: fc.constant(0), count: fc.constant(1) })
  )

  it("is never exceeded by what nsqd may push, whatever happens", () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), (count, steps) => {
        const credit = ticking()
        let limit = 0
        let pushed = false
        const all = Array.from({ length: count }, () => nsqd(credit, () => (pushed = true)))
        const held = () => all.reduce((sum, each) => sum + each.inFlight(), 0)
        for (const { count: amount, on, what } of steps) {
          const before = held()
          pushed = false
          const one = all[on % all.length]!
          if (what === "put") one.put(amount)
          if (what === "tick") credit.tick()
          if (what === "finish") for (let left = amount; left > 0 && one.finish(); left--);
          if (what === "credit") {
            limit = amount
            credit.set(amount)
          }
          // What was in flight when the credit was lowered stays so; nothing is added to it.
          assert.isAtMost(held(), Math.max(limit, before))
          if (pushed) assert.isAtMost(held(), limit)
          assert.isAtMost(
            all.reduce((sum, each) => sum + Math.max(each.rdy(), each.inFlight()), 0),
            Math.max(limit, held())
          )
          if (limit === 0) assert.isTrue(all.every((each) => each.rdy() === 0))
        }
      })
    ))

  it("hears every connection in turn, however small it is", () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 2, max: 6 }), fc.nat(5), (limit, count, last) => {
        const credit = ticking()
        const all = Array.from({ length: count }, () => nsqd(credit, () => {}))
        credit.set(limit)
        const busy = all[0]!
        const rare = all[1 + (last % (count - 1))]!
        busy.put(100_000)
        rare.put(1)
        // A busy connection keeps its turn for a while, then the others have one each.
        while (credit.now() < 600) {
          for (let done = 0; done < 10; done++) busy.finish()
          credit.tick()
        }
        assert.strictEqual(rare.backlog(), 0)
      })
    ))

  it("that grows and shrinks by one changes one RDY each time, and what it grew by is used", () => {
    const credit = ticking()
    const written: Array<number> = []
    const rdy = [0, 1, 2].map(() => {
      const handle = credit.join((share) => void written.push(share), 2500)
      return handle
    })
    credit.set(4)
    // All of it is held, as by deliveries that cannot be settled for now.
    for (const handle of [...rdy, rdy[0]!]) handle.arrived()
    for (const _ of [1, 2, 3]) {
      written.length = 0
      credit.set(5)
      credit.set(5)
      assert.lengthOf(written, 1)
      credit.set(4)
      assert.lengthOf(written, 2)
    }
  })

  it("leaves most of a small credit to the one connection that delivers", () => {
    const credit = ticking()
    const all = [nsqd(credit, () => {}), nsqd(credit, () => {})]
    credit.set(1)
    all[0]!.put(100_000)
    let ticks = 0
    for (let tick = 0; tick < 100; tick++) {
      if (all[0]!.finish()) ticks++
      credit.tick()
    }
    assert.isAtLeast(ticks, 75)
  })

  describe("learns the way to nsqd and back", () => {
    /** Two connections, of which one has three messages; the last arrived so long after there was no room for it. */
    const far = (way: number) => {
      let now = 0
      const credit = Credit.make(() => now)
      const [one] = [credit.join(() => {}, 2500), credit.join(() => {}, 2500)]
      const pass = (millis: number) => void (now += millis)
      credit.set(3)
      one!.arrived()
      one!.arrived()
      pass(way)
      one!.arrived()
      return { one: one!, credit, pass }
    }

    it("anew after nsqd has taken a message back, and has sent another one in its place", () => {
      const { credit, one, pass } = far(700)
      one.settled()
      assert.strictEqual(credit.pause(), 50)
      pass(5)
      one.arrived()
      one.settled()
      assert.strictEqual(credit.pause(), 18)
    })

    it("not by a message that was sent before a turn ended, and has room after it", () => {
      const { credit, one, pass } = far(15)
      one.settled()
      one.settled()
      pass(20)
      credit.set(1)
      one.settled()
      pass(1)
      one.arrived()
      one.settled()
      assert.strictEqual(credit.pause(), 30)
    })
  })

  it("does not tick while nothing happens", () => {
    let now = 0
    let woken = 0
    const credit = Credit.make(
      () => now,
      () => void woken++
    )
    const [one] = [nsqd(credit, () => {}), nsqd(credit, () => {})]
    credit.set(4)
    while (Number.isFinite(credit.pause())) {
      now += credit.pause()
      credit.tick()
    }
    assert.isAtMost(now, 200)
    woken = 0
    one!.put(1)
    assert.strictEqual(woken, 1)
    assert.isAtMost(credit.pause(), 50)
  })

  it("does not tick while handlers have all of it, until another connection has waited for long", () => {
    let now = 0
    const credit = Credit.make(() => now)
    const [one, other] = [nsqd(credit, () => {}), nsqd(credit, () => {})]
    credit.set(1)
    now += 10
    one.put(2)
    other.put(1)
    assert.strictEqual(credit.pause(), 490)
    now += 490
    credit.tick()
    assert.strictEqual(credit.pause(), Number.POSITIVE_INFINITY)
    one.finish()
    assert.strictEqual(other.inFlight(), 1)
  })

  it("counts what handlers still have of a lost connection, until they are done", () => {
    const credit = ticking()
    const [one, other] = [nsqd(credit, () => {}), nsqd(credit, () => {})]
    credit.set(4)
    one.put(2)
    one.lose()
    other.put(10)
    assert.strictEqual(other.inFlight(), 2)
    one.finish()
    assert.strictEqual(other.inFlight(), 3)
    one.finish()
    assert.strictEqual(other.inFlight(), 4)
  })

  describe("that is less than the connections", () => {
    /** Connections whose last RDY can be seen, under a credit of 1. */
    const few = (count: number) => {
      let now = 0
      const credit = Credit.make(() => now)
      const shares = Array.from({ length: count }, () => 0)
      const members = shares.map((_, index) => credit.join((share) => void (shares[index] = share), 2500))
      credit.set(1)
      return {
        members,
        pause: credit.pause,
        whose: () => shares.indexOf(1),
        turn: credit.tick,
        pass: (millis: number) => void (now += millis),
        tick: () => {
          now += credit.pause()
          credit.tick()
        }
      }
    }

    it.each([2, 6, 12])("hears each of %i idle ones once in a round of 36 ms", (count) => {
      const { pause, tick, whose } = few(count)
      assert.strictEqual(pause(), 36 / count)
      const heard = new Set<number>()
      for (let left = count; left > 0; left--) {
        heard.add(whose())
        tick()
      }
      assert.strictEqual(heard.size, count)
    })

    it("is where a message is that came when its turn was over", () => {
      const { members, tick, whose } = few(3)
      const first = whose()
      tick()
      assert.notStrictEqual(whose(), first)
      members[first]!.arrived()
      assert.strictEqual(whose(), first)
    })

    it("has no turns that are shorter than the way to nsqd and back, as messages tell it", () => {
      const { members, pass, pause, tick, whose } = few(12)
      const first = members[whose()]!
      tick()
      pass(15)
      first.arrived()
      first.settled()
      assert.strictEqual(pause(), 30)
      tick()
      const next = members[whose()]!
      pass(1)
      next.arrived()
      next.settled()
      // While the one that has delivered waits for the others, no longer than the way; then a twelfth of a round.
      assert.strictEqual(pause(), 2)
      pass(50)
      assert.strictEqual(pause(), 3)
    })

    it("leaves a turn to the one that delivers, until others have waited for 500 ms", () => {
      const { members, pass, turn, whose } = few(3)
      const busy = whose()
      let kept = 0
      while (whose() === busy && kept < 1000) {
        members[busy]!.arrived()
        pass(1)
        members[busy]!.settled()
        pass(1)
        kept += 2
        if (kept % 12 === 0) turn()
      }
      assert.isAtLeast(kept, 400)
      assert.isAtMost(kept, 560)
    })
  })
})
