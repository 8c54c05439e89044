import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as RecentSet from "../../src/adapter-kit/RecentSet.ts"

describe("RecentSet", () => {
  it("knows the last names that were added, and not many before them", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 0, max: 100 }), (limit, count) => {
        const remembered = RecentSet.make(limit)
        for (let n = 0; n < count; n++) remembered.add(`n${n}`)
        const known = Array.from({ length: count }, (_, n) => n).filter((n) => remembered.has(`n${n}`))
        assert.isAtLeast(known.length, Math.min(limit, count))
        assert.isBelow(known.length, 2 * limit)
        assert.deepStrictEqual(
          known,
          Array.from({ length: known.length }, (_, n) => count - known.length + n)
        )
      })
    )
  })

  it("forgets what it is told to, and remembers nothing with a limit of 0", () => {
    const remembered = RecentSet.make(2)
    for (const name of ["a", "b", "c"]) remembered.add(name)
    remembered.delete("a")
    assert.deepStrictEqual([remembered.has("a"), remembered.has("b")], [false, true])
    const none = RecentSet.make(0)
    none.add("a")
    assert.isFalse(none.has("a"))
  })
})
