import { assert, describe, it } from "@effect/vitest"
import * as Data from "effect/Data"
import * as fc from "fast-check"
import { inspect } from "node:util"
import * as Failure from "../../src/policy/Failure.ts"

const now = Date.parse("2026-01-01T00:00:00Z")

const caused = (message: string, cause: unknown, properties: object = {}) =>
  Object.assign(new Error(message, { cause }), properties)

const throwing = new Proxy(
  {},
  {
    get: () => {
      throw new Error("hands off")
    },
    getPrototypeOf: () => {
      throw new Error("hands off")
    },
    ownKeys: () => {
      throw new Error("hands off")
    }
  }
)

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

class Declined extends Data.TaggedError("Declined")<{ readonly message: string }> {}

describe("summarize", () => {
  const circular: Record<string, unknown> = {}
  circular["self"] = circular
  const cases: ReadonlyArray<readonly [string, unknown, string, string]> = [
    ["an error", new TypeError("no"), "TypeError", "no"],
    ["a tagged error", new Declined({ message: "no" }), "Declined", "no"],
    ["a tagged object", { _tag: "Declined", message: "no" }, "Declined", "no"],
    ["a tagged object without a message", { _tag: "Declined", code: 5 }, "Declined", '{"_tag":"Declined","code":5}'],
    ["an error of another realm", { name: "RangeError", message: "far" }, "RangeError", "far"],
    ["many errors", new AggregateError([new Error("a"), new Error("b")], "all failed"), "AggregateError", "all failed"],
    ["text", "no", "NonError(string)", "no"],
    ["null", null, "NonError(null)", "null"],
    ["undefined", undefined, "NonError(undefined)", "undefined"],
    ["a bigint", 5n, "NonError(bigint)", "5"],
    ["a symbol", Symbol("no"), "NonError(symbol)", "Symbol(no)"],
    ["an object", { code: 5 }, "NonError(object)", '{"code":5}'],
    ["NaN", Number.NaN, "NonError(number)", "NaN"],
    ["infinity", Number.POSITIVE_INFINITY, "NonError(number)", "Infinity"],
    ["nothing", {}, "NonError(object)", "{}"],
    [
      "a response",
      new Response("", { status: 503, statusText: "Service Unavailable" }),
      "NonError(Response)",
      "Response 503 Service Unavailable"
    ],
    ["a Map", new Map([["a", 1]]), "NonError(Map)", "Map"],
    ["a circular object", circular, "NonError(object)", "[object Object]"],
    [
      "a circular object without a prototype",
      Object.assign(Object.create(null), { n: 1n }),
      "NonError(object)",
      "an unprintable object"
    ],
    ["an error whose name is no text", Object.assign(new Error("no"), { name: 5 }), "5", "no"],
    ["a proxy that throws", throwing, "NonError(object)", "an unprintable object"],
    ["a revoked proxy", revoked(), "NonError(object)", "an unprintable object"]
  ]
  it.each(cases)("%s", (_, error, name, message) => assert.deepStrictEqual(Failure.summarize(error), { name, message }))

  it("a function", () => assert.strictEqual(Failure.summarize(() => 1).name, "NonError(function)"))
})

describe("make", () => {
  const make = (error: unknown) => Failure.make(error, now)

  it("keeps what was thrown, and knows nothing of a plain error", () => {
    const error = new Error("no")
    assert.deepStrictEqual(make(error), {
      error,
      summary: { name: "Error", message: "no" },
      chain: [{ name: "Error", message: "no" }],
      trace: undefined,
      tags: ["Error"],
      permanent: false,
      retryAfter: undefined,
      problem: undefined
    })
  })

  const refused = new Error("connect ECONNREFUSED 10.0.0.7:443")
  const described: ReadonlyArray<readonly [string, unknown, string]> = [
    ["a cause", caused("fetch failed", refused), "fetch failed, caused by connect ECONNREFUSED 10.0.0.7:443"],
    [
      "the first of many, where the cause has no text",
      caused("fetch failed", new AggregateError([refused, new Error("connect ECONNREFUSED ::1:443")])),
      "fetch failed, caused by connect ECONNREFUSED 10.0.0.7:443"
    ],
    ["the name of a cause", caused("a", caused("b", new TypeError("c"))), "a, caused by b, caused by TypeError: c"],
    ["text that was thrown", caused("a", "quota"), "a, caused by quota"],
    ["each text once", caused(`cannot pay: ${refused.message}`, refused), `cannot pay: ${refused.message}`],
    ["no large object", caused("a", { rows: [1, 2, 3] }), "a"],
    [
      "room for the cause of a long message",
      caused("x".repeat(1000), refused),
      `${"x".repeat(154)}…, caused by connect ECONNREFUSED 10.0.0.7:443`
    ]
  ]
  it.each(described)("shows in a message: %s", (_, error, message) =>
    assert.strictEqual(make(error).summary.message, message)
  )

  it("collects names and tags over the whole chain", () => {
    const error = caused("a", new Declined({ message: "b" }))
    error.cause = Object.assign(new Declined({ message: "b" }), { cause: new TypeError("c") })
    assert.deepStrictEqual(make(error).tags, ["Error", "Declined", "Declined", "TypeError"])
  })

  it("ends in a cycle", () => {
    const error = caused("a", undefined)
    error.cause = caused("b", error)
    assert.lengthOf(make(error).tags, 10)
  })

  it("does not look into an aggregate: none of its errors is the cause", () => {
    const error = new AggregateError([new Failure.PermanentError({ message: "no" })])
    assert.isFalse(make(error).permanent)
    assert.deepStrictEqual(make(error).tags, ["AggregateError"])
  })

  const permanent: ReadonlyArray<readonly [string, unknown, boolean]> = [
    ["ours", new Failure.PermanentError({ message: "no" }), true],
    ["a property", caused("no", undefined, { permanent: true }), true],
    ["a plain object", { permanent: true }, true],
    ["a cause", caused("a", caused("b", new Failure.PermanentError({ message: "no" }))), true],
    ["outermost true", caused("a", caused("b", undefined, { permanent: false }), { permanent: true }), true],
    ["outermost false", caused("a", new Failure.PermanentError({ message: "no" }), { permanent: false }), false],
    ["no boolean", caused("a", undefined, { permanent: "yes" }), false],
    ["an own cause", new Failure.PermanentError({ message: "a", cause: new Error("b") }), true]
  ]
  it.each(permanent)("permanent: %s", (_, error, expected) => assert.strictEqual(make(error).permanent, expected))

  it("takes retryAfter from the outermost error that has a valid one", () => {
    const inner = new Failure.RetryLaterError({ message: "b", retryAfter: 7 })
    assert.strictEqual(make(inner).retryAfter, 7000)
    assert.strictEqual(make(caused("a", inner)).retryAfter, 7000)
    assert.strictEqual(make(caused("a", inner, { retryAfter: 0 })).retryAfter, 0)
    assert.strictEqual(make(caused("a", inner, { retryAfter: "soon" })).retryAfter, 7000)
  })

  const javascript = Failure.RetryLaterError as new (...given: ReadonlyArray<unknown>) => Error
  const form = "is a RetryLaterError without retryAfter. Write new RetryLaterError({ message, retryAfter: seconds })"
  const ignored: ReadonlyArray<readonly [error: unknown, problem: string | undefined]> = [
    [caused("a", undefined, { permanent: true, retryAfter: 86_400 }), undefined],
    [caused("a", undefined, { permanent: null, retryAfter: null }), undefined],
    [
      caused("a", undefined, { permanent: "true" }),
      'error.permanent is "true", which is neither true nor false; it is ignored'
    ],
    [
      caused("a", caused("b", undefined, { permanent: 1 })),
      "error.cause.permanent is 1, which is neither true nor false; it is ignored"
    ],
    [
      caused("a", undefined, { retryAfter: 86_401 }),
      "error.retryAfter is 86401, which is more than 24 hours from now; the retry is due after 24 hours"
    ],
    [new javascript("busy", { retryAfter: 2 }), `error ${form}`],
    [new javascript({ message: "busy", delay: 2 }), `error ${form}`],
    [caused("a", new javascript("busy")), `error.cause ${form}`]
  ]
  it.each(ignored)("says what is not followed: %o", (error, problem) =>
    assert.strictEqual(make(error).problem, problem)
  )

  it("keeps the message of a RetryLaterError that is given text alone", () =>
    assert.strictEqual(new javascript("busy").message, "busy"))

  it("takes anything", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true }), (u) => void make(u))
    )
    for (const error of [
      throwing,
      revoked(),
      caused("a", throwing),
      caused("a", undefined, { retryAfter: throwing })
    ]) {
      assert.isFalse(make(error).permanent)
      assert.isUndefined(make(error).retryAfter)
    }
    const getter = Object.defineProperty(new Error("a"), "cause", { get: () => assert.fail("no cause") })
    assert.deepStrictEqual(make(getter).tags, ["Error"])
  })
})

describe("withoutText", () => {
  class VaultError extends Error {}
  const fail = (): never => {
    throw new Error("hunter2")
  }
  it.each<[error: unknown, called: string]>([
    [new TypeError("hunter2"), "TypeError"],
    [new VaultError("hunter2"), "VaultError"],
    [
      new TypeError("hunter2", { cause: Object.assign(new Error("hunter2"), { code: "ECONNREFUSED" }) }),
      "TypeError (ECONNREFUSED)"
    ],
    [Object.assign(new Error("a"), { name: "my hunter2", code: "the hunter2" }), "an error"],
    ["hunter2", "an error"],
    [undefined, "an error"],
    [new Proxy(new Error("hunter2"), { get: fail, getPrototypeOf: fail }), "an error"]
  ])("%#", (error, called) => {
    const hidden = Failure.withoutText("the function", error)
    assert.strictEqual(
      hidden.message,
      `the function has failed with ${called}; its text may contain a secret and is not shown`
    )
    assert.notInclude(inspect(hidden, { showHidden: true }), "hunter2")
  })
})
