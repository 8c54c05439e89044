import { OptionNames } from "@requeue/core/port"
import { assert, describe, it } from "vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as PolicyConfig from "../src/PolicyConfig.ts"
import * as StrictSchema from "../src/StrictSchema.ts"

const problemsOf = (json: unknown): ReadonlyArray<StrictSchema.Problem> => {
  const result = Schema.decodeUnknownResult(PolicyConfig.RetryPolicy)(json, { errors: "all" })
  return Result.isFailure(result) ? StrictSchema.problems(result.failure, json) : []
}

describe("problems", () => {
  it("are all of them, each with its path and what to do", () => {
    const json = { maxRetires: 1, backoff: { type: "sequence", delays: ["1 second", "5 secs"] }, immediate: "x" }
    assert.deepStrictEqual(problemsOf(json), [
      { path: ["immediate"], detail: 'must be a number, got "x"' },
      {
        path: ["backoff", "delays", 1],
        detail: 'must be a duration from 0ms to 1d, got "5 secs"',
        remedy: 'Write a number of milliseconds, or text such as "10 seconds" or "5 minutes"'
      },
      { path: ["maxRetires"], detail: "unknown key", remedy: "Did you mean maxRetries?" }
    ])
    assert.deepStrictEqual(problemsOf({ maxRetries: -1 }), [
      { path: ["maxRetries"], detail: 'must be a whole number >= 0 or "unlimited", got -1' }
    ])
  })

  it("list what is known when nothing is near", () => {
    const [problem] = problemsOf({ classify: { everything: [] } })
    assert.strictEqual(problem?.remedy, "Allowed: permanent, drop, uncounted")
  })

  it("know keys with signs in them", () => {
    const decode = Schema.decodeUnknownResult(
      StrictSchema.struct({ $schema: Schema.optionalKey(Schema.String), "a.b": Schema.String })
    )
    assert.isTrue(Result.isSuccess(decode({ $schema: "x", "a.b": "y" })))
    assert.isTrue(Result.isFailure(decode({ $schema: "x", "a.b": "y", aXb: "z" })))
  })
})

describe("the nearest name", () => {
  const known = ["maxRetries", "maxAttempts", "backoff", "retry"]
  it.each([
    ["maxRetires", "maxRetries"],
    ["MaxRetries", "maxRetries"],
    ["max_retries", "maxRetries"],
    ["backof", "backoff"],
    ["rety", "retry"],
    ["queue", undefined],
    ["", undefined]
  ])("to %j is %j", (name, expected) => {
    assert.strictEqual(OptionNames.nearest(name, known), expected)
  })
})
