import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { WaitQueue } from "../../src/consume/internal/batcher.ts"
import type { Item } from "../../src/consume/internal/item.ts"
import { item } from "../items.ts"

/** A step: a message comes, some of the first leave, one of those that ever came leaves, or leaves and comes again. */
const step = fc.oneof(
  { weight: 3, arbitrary: fc.constant(["push"] as const) },
  fc.tuple(fc.constant("take" as const), fc.nat({ max: 9 })),
  { weight: 2, arbitrary: fc.tuple(fc.constant("delete" as const), fc.nat({ max: 400 })) },
  fc.tuple(fc.constant("return" as const), fc.nat({ max: 400 }))
)

describe("a line", () => {
  it("is an array of which any member may leave, and come again at the end", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300, size: "max" }), (steps) => {
        const line = new WaitQueue()
        const all: Array<Item> = []
        let model: Array<Item> = []
        for (const [what, number = 0] of steps) {
          const one = all[number % Math.max(1, all.length)]
          if (what === "push") {
            all.push(item(String(all.length)))
            model.push(all.at(-1)!)
            line.push(all.at(-1)!)
          } else if (what === "take") {
            assert.deepStrictEqual(line.take(number), model.splice(0, number))
          } else if (one !== undefined) {
            model = model.filter((other) => other !== one)
            line.delete(one)
            if (what === "return") {
              model.push(one)
              line.push(one)
            }
          }
          assert.strictEqual(line.size, model.length)
          assert.strictEqual(line.first(), model[0])
        }
        assert.deepStrictEqual(line.all(), model)
      }),
      { numRuns: 100, endOnFailure: true }
    )
  })

  it("removes nobody who is in another line", () => {
    const [one, other] = [new WaitQueue(), new WaitQueue()]
    one.push(item("a"))
    const b = item("b")
    other.push(b)
    one.delete(b)
    one.delete(item("c"))
    assert.deepStrictEqual([one.size, other.size, one.first()?.key], [1, 1, item("a").key])
  })
})
