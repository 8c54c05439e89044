import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as BoundedMap from "../../src/runtime/BoundedMap.ts"

describe("BoundedMap", () => {
  it("knows the last keys that were set, and not many before them", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 0, max: 100 }), (limit, count) => {
        const map = BoundedMap.make<number>(limit)
        for (let n = 0; n < count; n++) map.set(`n${n}`, n)
        const known = Array.from({ length: count }, (_, n) => n).filter((n) => map.has(`n${n}`))
        assert.isAtLeast(known.length, Math.min(limit, count))
        assert.isBelow(known.length, 2 * limit)
        assert.deepStrictEqual(
          known,
          Array.from({ length: known.length }, (_, n) => count - known.length + n)
        )
        for (const n of known) assert.strictEqual(map.get(`n${n}`), n)
      })
    )
  })

  it("is a Map, as long as it forgets nothing", () => {
    const command = fc.tuple(fc.constantFrom("set", "delete"), fc.constantFrom("a", "b", "c"), fc.nat(9))
    fc.assert(
      fc.property(fc.array(command, { maxLength: 50 }), (commands) => {
        // Every set may be of a key that is in the older half as well.
        const [map, model] = [BoundedMap.make<number>(3), new Map<string, number>()]
        for (const [name, key, value] of commands) {
          if (name === "set") {
            map.set(key, value)
            model.set(key, value)
          } else {
            map.delete(key)
            model.delete(key)
          }
          for (const each of ["a", "b", "c"]) assert.strictEqual(map.get(each), model.get(each))
          assert.strictEqual(map.isEmpty(), model.size === 0)
        }
      })
    )
  })

  it("a key that is set again is the youngest, with its new value", () => {
    const map = BoundedMap.make<number>(2)
    for (const [key, value] of [
      ["a", 1],
      ["b", 2],
      ["a", 3],
      ["c", 4]
    ] as const)
      map.set(key, value)
    assert.deepStrictEqual([map.get("a"), map.get("c")], [3, 4])
  })

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("refuses a limit of %d", (limit) =>
    assert.throws(() => BoundedMap.make(limit), RangeError, "BoundedMap.make: limit must be a whole number >= 0")
  )

  it("forgets what it is told to, and keeps nothing with a limit of 0", () => {
    const map = BoundedMap.make<true>(2)
    for (const key of ["a", "b", "c"]) map.set(key, true)
    map.delete("a")
    assert.deepStrictEqual([map.has("a"), map.has("b")], [false, true])
    const none = BoundedMap.make<true>(0)
    none.set("a", true)
    assert.isFalse(none.has("a"))
  })
})
