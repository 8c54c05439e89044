import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Heap from "../../src/runtime/Heap.ts"

type Operation =
  | { readonly _tag: "Push"; readonly key: number }
  | { readonly _tag: "Pop" }
  | { readonly _tag: "Keep"; readonly divisor: number }

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ _tag: fc.constant("Push" as const), key: fc.integer({ min: 0, max: 8 }) }) },
  { weight: 3, arbitrary: fc.constant({ _tag: "Pop" as const }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Keep" as const), divisor: fc.integer({ min: 2, max: 4 }) }) }
)

describe("heap", () => {
  it("is a sorted array, equal keys in the order of their coming", () =>
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
        const heap = Heap.make<number>()
        let model: Array<{ readonly key: number; readonly value: number }> = []
        operations.forEach((operation, value) => {
          switch (operation._tag) {
            case "Push":
              heap.push(operation.key, value)
              model.push({ key: operation.key, value })
              // A stable sort: what came later stays behind its equals.
              model.sort((a, b) => a.key - b.key)
              break
            case "Pop":
              assert.strictEqual(heap.pop(), model.shift()?.value)
              break
            case "Keep": {
              const keep = (value: number) => value % operation.divisor !== 0
              heap.keep(keep)
              model = model.filter(({ value }) => keep(value))
            }
          }
          assert.strictEqual(heap.size(), model.length)
          assert.strictEqual(heap.peekKey(), model[0]?.key)
        })
        const rest = model.map(() => heap.pop())
        assert.deepStrictEqual(
          rest,
          model.map(({ value }) => value)
        )
        assert.isUndefined(heap.pop())
      }),
      { numRuns: 500 }
    ))
})
