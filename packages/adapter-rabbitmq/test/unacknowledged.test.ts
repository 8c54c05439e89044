import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Unacknowledged from "../src/internal/consume/unacknowledged.ts"

type Member = Unacknowledged.Member

const member = (tag: number): Member => ({ tag, state: "open" })

describe("deliveries that the server waits for", () => {
  it("are acknowledged in one frame as far as nothing older is in the way", () => {
    const unacknowledged = Unacknowledged.make<Member>()
    const [a, b, c, d] = [1, 2, 3, 4].map(member) as [Member, Member, Member, Member]
    for (const each of [a, b, c, d]) unacknowledged.add(each)
    b.state = "acking"
    assert.isUndefined(unacknowledged.endOfRun())
    unacknowledged.answered(b)
    a.state = "acking"
    d.state = "acking"
    // Up to the last that is being acknowledged: the server has forgotten what was answered alone.
    assert.strictEqual(unacknowledged.endOfRun(), 1)
    c.state = "acking"
    assert.strictEqual(unacknowledged.endOfRun(), 4)
    assert.isUndefined(unacknowledged.endOfRun())
  })

  it("are never acknowledged unless somebody asked for it, whatever is answered in which order", () => {
    const step = fc.oneof(
      fc.record({ arrive: fc.integer({ min: 1, max: 50 }) }),
      fc.record({ ack: fc.array(fc.nat({ max: 200 }), { maxLength: 60 }) }),
      fc.record({ reject: fc.nat({ max: 200 }) })
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const unacknowledged = Unacknowledged.make<Member>()
        /** The deliveries that a server would still wait for. */
        const open: Array<Member> = []
        let tags = 0
        const take = (index: number): Member | undefined => open.splice(index % Math.max(1, open.length), 1)[0]
        for (const each of steps) {
          if ("arrive" in each) {
            for (let n = 0; n < each.arrive; n++) {
              const arrived = member(++tags)
              open.push(arrived)
              unacknowledged.add(arrived)
            }
          } else if ("reject" in each) {
            const rejected = take(each.reject)
            if (rejected !== undefined) unacknowledged.answered(rejected)
          } else {
            const acked = each.ack.flatMap((index) => take(index) ?? [])
            for (const one of acked) one.state = "acking"
            const last = unacknowledged.endOfRun() ?? 0
            assert.isTrue(last === 0 || acked.some(({ tag }) => tag === last))
            assert.isFalse(open.some(({ tag }) => tag < last))
            for (const one of acked) {
              assert.strictEqual(one.state === "answered", one.tag <= last)
              if (one.state !== "answered") unacknowledged.answered(one)
            }
            const oldest = open[0]?.tag ?? Number.POSITIVE_INFINITY
            const expected = acked.filter(({ tag }) => tag < oldest).map(({ tag }) => tag)
            assert.strictEqual(last, Math.max(0, ...expected))
          }
        }
      })
    )
  })
})
