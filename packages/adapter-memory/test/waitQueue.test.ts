import { assert, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as WaitQueue from "../src/internal/publish/waitQueue.ts"

it("serves those who wait in the order in which they came, whoever leaves meanwhile", () =>
  fc.assert(
    fc.property(fc.array(fc.constantFrom("add", "take", "leave"), { size: "max", maxLength: 300 }), (steps) => {
      const waiters = WaitQueue.make<number>()
      const expected: Array<number> = []
      steps.forEach((step, i) => {
        if (step === "add") {
          waiters.add(i)
          expected.push(i)
        } else if (step === "take") {
          assert.strictEqual(waiters.take(), expected.shift())
        } else {
          const [leaver = -1] = expected.splice(expected.length >> 1, 1)
          waiters.remove(leaver)
        }
        assert.strictEqual(waiters.size(), expected.length)
      })
    })
  ))
