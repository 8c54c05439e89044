import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Bag from "../../src/runtime/Bag.ts"

describe("bag", () => {
  it("has what was added and not removed, like a set", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(9))), (steps) => {
        const members = Array.from({ length: 10 }, (_, name) => ({ name, place: -1 }))
        const bag = Bag.make<(typeof members)[number]>()
        const set = new Set<(typeof members)[number]>()
        for (const [enters, name] of steps) {
          const member = members[name]!
          if (!enters) {
            bag.delete(member)
            set.delete(member)
          } else if (!set.has(member)) {
            bag.add(member)
            set.add(member)
          }
          assert.strictEqual(bag.size(), set.size)
        }
        const names = (all: Iterable<{ name: number }>) => Array.from(all, ({ name }) => name).toSorted((a, b) => a - b)
        assert.deepStrictEqual(names(bag), names(set))
      })
    )
  })

  it("may change while somebody goes through it", () => {
    const bag = Bag.make<{ place: number }>()
    for (let n = 0; n < 5; n++) bag.add({ place: -1 })
    for (const member of bag) bag.delete(member)
    assert.strictEqual(bag.size(), 0)
  })
})
