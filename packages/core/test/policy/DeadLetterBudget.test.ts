import { assert, describe, it } from "@effect/vitest"
import * as DeadLetterBudget from "../../src/policy/DeadLetterBudget.ts"

describe("DeadLetterBudget", () => {
  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("refuses a max of %s", (max) =>
    assert.throws(
      () => DeadLetterBudget.make({ max }),
      RangeError,
      "DeadLetterBudget.make: max must be a whole number >= 1"
    )
  )

  it.each([-0.1, Number.NaN, Number.POSITIVE_INFINITY])("refuses %s per success", (perSuccess) =>
    assert.throws(
      () => DeadLetterBudget.make({ max: 1, perSuccess }),
      RangeError,
      "DeadLetterBudget.make: perSuccess must be"
    )
  )

  it("a built budget stays what it is", () => {
    const budget = DeadLetterBudget.make({ max: 5, perSuccess: 0 })
    assert.deepStrictEqual(DeadLetterBudget.make(budget), budget)
    assert.deepStrictEqual(DeadLetterBudget.make({ max: 5, perSuccess: undefined }), { max: 5, perSuccess: 0.1 })
  })

  it.each([
    [{}, "DeadLetterBudget.make: max must be a whole number >= 1, got undefined"],
    [{ max: 5, perSucess: 1 }, "DeadLetterBudget.make: unknown option perSucess. Did you mean perSuccess?"],
    [5, "DeadLetterBudget.make: options must be an object, got 5. Allowed: max, perSuccess"],
    [null, "DeadLetterBudget.make: options must be an object, got null. Write {} for the defaults"]
  ])("refuses %s", (input, message) =>
    assert.throws(() => DeadLetterBudget.make(input as DeadLetterBudget.Options), RangeError, message)
  )

  it("says what to do when it is used up", () => {
    const error = new DeadLetterBudget.DeadLetterBudgetExhausted({ queue: "work", max: 5 })
    assert.match(
      error.message,
      /^deadLetterBudget: the consumer of work stopped: 5 messages .* then start the consumer again$/
    )
  })
})
