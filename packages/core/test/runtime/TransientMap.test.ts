import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as TransientMap from "../../src/runtime/TransientMap.ts"

describe("TransientMap", () => {
  it("is a Map, however many values have left", () => {
    const step = fc.tuple(fc.constantFrom("set", "delete"), fc.nat(9))
    fc.assert(
      fc.property(fc.nat(600), fc.array(step, { maxLength: 600 }), (before, steps) => {
        const [map, model] = [TransientMap.make<number>(), new Map<string, number>()]
        map.set("stays", -1)
        model.set("stays", -1)
        for (let n = 0; n < before; n++) {
          map.set("leaves", n)
          map.delete("leaves")
        }
        for (const [n, [name, key]] of steps.entries()) {
          if (name === "set") {
            map.set(`n${key}`, n)
            model.set(`n${key}`, n)
          } else {
            map.delete(`n${key}`)
            model.delete(`n${key}`)
          }
          assert.strictEqual(map.get(`n${key}`), model.get(`n${key}`))
        }
        assert.strictEqual(map.size(), model.size)
        assert.sameMembers([...map.values()], [...model.values()])
      })
    )
  })
})
