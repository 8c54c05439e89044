import { assert, describe, it } from "@effect/vitest"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"

const rejected: ReadonlyArray<readonly [string, object, string]> = [
  [
    "both limits",
    { maxRetries: 1, maxAttempts: 2 },
    "RetryPolicy.make: give maxRetries or maxAttempts, not both, got 1 and 2"
  ],
  [
    "an option of its backoff",
    { base: 1000 },
    "RetryPolicy.make: unknown option base. It belongs in backoff. Write backoff: exponential(1000)"
  ],
  ["negative retries", { maxRetries: -1 }, "RetryPolicy.make: maxRetries must be a whole number >= 0"],
  ["a fraction", { maxRetries: 1.5 }, "RetryPolicy.make: maxRetries must be"],
  ["NaN", { maxRetries: Number.NaN }, "RetryPolicy.make: maxRetries must be"],
  [
    "Infinity, for which there is a word",
    { maxRetries: Number.POSITIVE_INFINITY },
    "RetryPolicy.make: maxRetries must be"
  ],
  ["another word", { maxRetries: "endless" }, "RetryPolicy.make: maxRetries must be"],
  ["digits", { maxRetries: "3" }, "RetryPolicy.make: maxRetries must be"],
  ["0 attempts", { maxAttempts: 0 }, "RetryPolicy.make: maxAttempts must be a whole number >= 1"],
  ["half an attempt", { maxAttempts: 0.5 }, "RetryPolicy.make: maxAttempts must be"],
  [
    "a negative age",
    { maxAge: -1 },
    "RetryPolicy.make: maxAge must be a duration of at least 0ms, or Infinity, got -1"
  ],
  ["an age that is none", { maxAge: "soon" }, "RetryPolicy.make: maxAge"],
  ["NaN as age", { maxAge: Number.NaN }, "RetryPolicy.make: maxAge"],
  ["negative immediate retries", { immediate: -1 }, "RetryPolicy.make: immediate"],
  [
    "11 immediate retries",
    { immediate: 11 },
    "RetryPolicy.make: immediate must be a whole number from 0 to 10, got 11"
  ],
  ["half an immediate retry", { immediate: 0.5 }, "RetryPolicy.make: immediate"],
  ["no dead-letter queue", { deadLetter: "" }, "RetryPolicy.make: deadLetter"],
  ["no dead-letter queue in details", { deadLetter: { queue: "" } }, "RetryPolicy.make: deadLetter"],
  [
    "false as dead letters",
    { deadLetter: false },
    'RetryPolicy.make: deadLetter must be a queue\'s name, "discard" or'
  ],
  ["null as dead letters", { deadLetter: null }, "RetryPolicy.make: deadLetter must be a queue's name"],
  ["a number as dead letters", { deadLetter: 5 }, "deadLetter must be a queue's name"],
  ["a list of dead-letter queues", { deadLetter: ["dead"] }, "{ queue, routes, redact }, got an array"],
  [
    "discard as an option of its own",
    { deadLetter: { queue: "x", discard: true } },
    'RetryPolicy.make: deadLetter must have no options but queue, routes and redact, got "discard"'
  ],
  ["discard alone", { deadLetter: { discard: true } }, "deadLetter must have no options but"],
  ["a misspelt detail", { deadLetter: { que: "x" } }, 'redact, got "que"'],
  [
    "a queue that is no text",
    { deadLetter: { queue: false } },
    "RetryPolicy.make: deadLetter must be a queue's name, got false"
  ],
  ["routes that are none", { deadLetter: { routes: null } }, "RetryPolicy.make: deadLetter routes must be"],
  [
    "a route of no reason",
    { deadLetter: { routes: { permanant: "x" } } },
    "routes must be among retries-exhausted, permanent"
  ],
  [
    "a route that is no text",
    { deadLetter: { routes: { permanent: 5 } } },
    "deadLetter routes.permanent must be a queue's name, got 5"
  ],
  [
    "a redact that is no function",
    { deadLetter: { redact: "all" } },
    'deadLetter redact must be a function, got "all"'
  ],
  [
    "a class in a list of names",
    { classify: { permanent: [TypeError] } },
    'RetryPolicy.make: classify.permanent[0] must be the name of an error, as text, got a function. Write "TypeError"'
  ],
  [
    "a class for a list of names",
    { classify: { drop: RangeError } },
    'RetryPolicy.make: classify.drop must be an array of names of errors, got a function. Write ["RangeError"]'
  ],
  [
    "a function for a backoff",
    { backoff: (attempts: number) => attempts * 1000 },
    'backoff must be built, for example by exponential("1 second"), got a function. Write backoff: exponential("1 second")'
  ],
  [
    "a name for a list of names",
    { classify: { permanent: "E" } },
    'RetryPolicy.make: classify.permanent must be an array of names of errors, got "E". Write ["E"]'
  ],
  [
    "a classifier that is no function",
    { classify: { with: "E" } },
    "RetryPolicy.make: classify.with must be a function"
  ],
  ["a misspelt classification", { classify: { permanant: [] } }, "unknown option permanant. Did you mean permanent?"],
  [
    "null as classifier",
    { classify: null },
    "RetryPolicy.make: classify: options must be an object, got null. Write {} for the defaults"
  ],
  [
    "a word that is no rule after dead letters",
    { afterDeadLetter: "parks" },
    'RetryPolicy.make: afterDeadLetter must be one of "continue", "park", got "parks". Did you mean "park"?'
  ],
  ["a route to nowhere", { deadLetter: { routes: { permanent: "" } } }, "RetryPolicy.make: deadLetter"]
]

describe("make", () => {
  it.each(rejected)("refuses %s", (_, options, message) =>
    assert.throws(() => RetryPolicy.make(options as RetryPolicy.Options), RangeError, message)
  )

  it("has these defaults", () =>
    assert.deepStrictEqual<unknown>(RetryPolicy.make(), {
      maxAttempts: 4,
      maxDeliveries: 14,
      maxAge: Number.POSITIVE_INFINITY,
      immediate: 0,
      backoff: undefined,
      classify: { permanent: [], drop: [], uncounted: [], with: undefined },
      deadLetter: { queue: undefined, discard: false, routes: {}, redact: undefined },
      afterDeadLetter: "continue"
    }))

  it("takes undefined for not given", () =>
    assert.deepStrictEqual(
      RetryPolicy.make({
        maxRetries: undefined,
        maxAge: undefined,
        immediate: undefined,
        backoff: undefined,
        classify: { permanent: undefined, with: undefined },
        deadLetter: { queue: undefined, routes: undefined, redact: undefined }
      }),
      RetryPolicy.make()
    ))

  it("counts the limit with or without the first delivery", () => {
    assert.strictEqual(
      RetryPolicy.make({ maxRetries: 4 }).maxAttempts,
      RetryPolicy.make({ maxAttempts: 5 }).maxAttempts
    )
    assert.strictEqual(RetryPolicy.make({ maxAttempts: "unlimited" }).maxAttempts, Number.POSITIVE_INFINITY)
    assert.strictEqual(RetryPolicy.make({ maxAge: "2 days" }).maxAge, 172_800_000)
  })
})

describe("from", () => {
  const built = RetryPolicy.make({ maxRetries: 7, deadLetter: "dead" })

  it("takes a policy as it is, and options as make does", () => {
    assert.strictEqual(RetryPolicy.from(built), built)
    assert.deepStrictEqual(RetryPolicy.from({ maxRetries: 7, deadLetter: "dead" }), built)
  })

  it("takes a policy that was changed as data", () => {
    const changed = { ...built, maxAttempts: 3 }
    assert.strictEqual(RetryPolicy.from(changed), changed)
  })

  it("takes options that have every name of a policy's fields for options", () => {
    const rest = { immediate: 0, backoff: undefined, classify: {} }
    const options = { ...rest, maxAttempts: 2, maxAge: "1 hour", deadLetter: { queue: "dead" } } as const
    assert.deepStrictEqual(RetryPolicy.from(options), RetryPolicy.make(options))
  })

  it("refuses a policy to which an option was added", () => {
    assert.throws(() => RetryPolicy.from({ ...built, maxRetries: 1 } as RetryPolicy.RetryPolicy), RangeError)
  })

  it.each(rejected)("refuses %s", (_, options, message) =>
    assert.throws(() => RetryPolicy.from(options as RetryPolicy.Options), RangeError, message)
  )

  it.each([
    [false, "false"],
    [null, "null"],
    [5, "5"],
    ["linear", '"linear"'],
    [[], "an array"],
    [() => {}, "a function"]
  ])("refuses %s", (input, got) =>
    assert.throws(
      () => RetryPolicy.from(input as unknown as RetryPolicy.Options),
      RangeError,
      new RegExp(`^RetryPolicy.make: options must be an object, got ${got}`)
    )
  )
})

describe("deadLetterQueues", () => {
  const cases: ReadonlyArray<readonly [string, RetryPolicy.Options["deadLetter"], ReadonlyArray<string>]> = [
    ["the default", undefined, ["work.dlq"]],
    ["a name", "dead", ["dead"]],
    ["discard", "discard", []],
    ["a route besides the default", { routes: { permanent: "bad" } }, ["work.dlq", "bad"]],
    ["two routes to one queue", { queue: "dead", routes: { permanent: "bad", undecodable: "bad" } }, ["dead", "bad"]],
    ["discard but for a route", { queue: "discard", routes: { permanent: "bad" } }, ["bad"]]
  ]
  it.each(cases)("%s", (_, deadLetter, expected) =>
    assert.deepStrictEqual(RetryPolicy.deadLetterQueues(RetryPolicy.make({ deadLetter }), "work"), expected)
  )
})
