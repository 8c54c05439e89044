import { assert, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Delay from "../../src/message/Delay.ts"
import * as Failure from "../../src/policy/Failure.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import { backoff, random } from "../arbitraries.ts"

const failure = fc.oneof(
  fc.constant(undefined),
  fc.anything().map((retryAfter) => Failure.make(Object.assign(new Error("boom"), { retryAfter }), 0))
)

it("a retry's delay is whole milliseconds up to 24 hours, whatever attempts, age and error say", () =>
  fc.assert(
    fc.property(backoff, fc.double(), fc.double(), failure, random, (backoff, attempts, age, failure, random) => {
      const context = { queue: "q", attempts, age, failure, random, asked: false, delay: undefined }
      const policy = RetryPolicy.make({ maxRetries: "unlimited", backoff })
      const settlement = RetryPolicy.decide(policy, { ...context, defaultDelay: undefined })
      if (settlement._tag !== "Retry") return assert.isFalse(attempts < Number.POSITIVE_INFINITY)
      assert.isTrue(Number.isSafeInteger(settlement.delay) && settlement.delay >= 0 && settlement.delay <= Delay.max)
    }),
    { numRuns: 2000 }
  ))
