import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Acknowledgement from "../../src/policy/Acknowledgement.ts"
import { verdictOf } from "./Acknowledgement.oracle.ts"

type Call = Acknowledgement.Call

const ack = (index: number): Call => ({ _tag: "Ack", index })
const retry = (index: number, delay?: number): Call => ({ _tag: "Retry", index, delay })
const fail = (index: number, delay?: number): Call => ({ _tag: "Fail", index, error: "no", delay })
const ackAll: Call = { _tag: "AckAll" }
const retryAll = (delay?: number): Call => ({ _tag: "RetryAll", delay })

type State = ReadonlyArray<Acknowledgement.Verdict | undefined>

/** What a batch makes of a call: each message that it reaches has its verdict recorded. */
const record = (state: State, call: Call): State =>
  state.map((verdict, index) =>
    "index" in call && call.index !== index ? verdict : Acknowledgement.record(verdict, call)
  )

const untouched = (size: number): State => Array.from<undefined>({ length: size })

const reduce = (calls: ReadonlyArray<Call>, size = 2) => calls.reduce(record, untouched(size))

const finalise = (state: State, outcome: Acknowledgement.Outcome) =>
  state.map((verdict) => Acknowledgement.finalise(verdict, outcome))

const alphabet: ReadonlyArray<Call> = [
  ack(0),
  ack(1),
  retry(0),
  retry(0, 5),
  retry(1, 5),
  fail(0),
  fail(0, 7),
  ackAll,
  retryAll(),
  retryAll(9),
  retryAll(3)
]

const outcomes = ["success", "failure"] as const

describe("every sequence of calls", () => {
  const longest = 4
  // 11 calls, up to 4 of them, and how the handler ends.
  const total = 2 * [1, 2, 3, 4].reduce((sum, length) => sum + alphabet.length ** length, 1)

  /** Compares as text: one comparison per sequence instead of one per field. */
  const same = (
    actual: ReadonlyArray<Acknowledgement.Verdict>,
    calls: ReadonlyArray<Call>,
    outcome: "success" | "failure"
  ) => {
    actual.forEach((verdict, index) => {
      const expected = verdictOf(calls, index, outcome)
      const equal =
        verdict._tag === expected._tag &&
        verdict.by === expected.by &&
        (verdict._tag === "Ack" ||
          expected._tag === "Ack" ||
          (verdict.delay === expected.delay &&
            verdict.backoff === expected.backoff &&
            verdict.failed?.error === expected.failed?.error))
      if (!equal) assert.deepStrictEqual({ verdict, calls, index }, { verdict: expected, calls, index })
    })
  }

  it(`agrees with the oracle and keeps the laws, up to ${longest} calls on a batch of two`, () => {
    let checked = 0
    const visit = (calls: Array<Call>, before: State): void => {
      for (const outcome of outcomes) {
        same(finalise(before, outcome), calls, outcome)
        checked++
      }
      if (calls.length === longest) return
      for (const call of alphabet) {
        const after = record(before, call)
        before.forEach((verdict, index) => {
          if (verdict === undefined) return
          assert.strictEqual(after[index]?._tag, verdict._tag)
          assert.strictEqual(after[index]?.by, verdict.by)
          if (Acknowledgement.isFinal(verdict)) assert.strictEqual(after[index], verdict)
        })
        // A call that changes nothing answers the same, by which one that was ignored is known.
        record(after, call).forEach((verdict, index) => assert.strictEqual(verdict, after[index]))
        calls.push(call)
        visit(calls, after)
        calls.pop()
      }
    }
    visit([], untouched(2))
    assert.strictEqual(checked, total)
  })

  it("agrees with the oracle on larger batches and longer sequences", () => {
    const delay = fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined })
    const backoff = fc.boolean()
    const index = fc.integer({ min: 0, max: 4 })
    const call: fc.Arbitrary<Call> = fc.oneof(
      fc.record({ _tag: fc.constant("Ack" as const), index }),
      fc.record({ _tag: fc.constant("Retry" as const), index, delay, backoff }),
      fc.record({ _tag: fc.constant("Fail" as const), index, error: fc.integer({ min: 1, max: 3 }), delay, backoff }),
      fc.constant(ackAll),
      fc.record({ _tag: fc.constant("RetryAll" as const), delay, backoff })
    )
    fc.assert(
      fc.property(fc.array(call, { maxLength: 12 }), fc.constantFrom(...outcomes), (calls, outcome) =>
        same(finalise(reduce(calls, 5), outcome), calls, outcome)
      ),
      { numRuns: 2000 }
    )
  })
})

describe("the table", () => {
  const acked = "acked"
  /** Short for a verdict: acked, retried, retried with this delay, or failed in one of these ways. */
  const render = (verdict: Acknowledgement.Verdict) => {
    if (verdict._tag === "Ack") return acked
    if (verdict.failed !== undefined) return verdict.delay === undefined ? "failed" : `failed ${verdict.delay}`
    return verdict.delay === undefined ? "retried" : verdict.delay
  }

  const [A, success, failure] = [0, "success", "failure"] as const
  const rows: ReadonlyArray<
    readonly [string, ReadonlyArray<Call>, Acknowledgement.Outcome, string | number, string | number]
  > = [
    ["no calls, handler returns", [], success, acked, acked],
    ["no calls, handler throws", [], failure, "retried", "retried"],
    ["A.ack, A.retry", [ack(A), retry(A)], success, acked, acked],
    ["A.ack, A.retry, then throw", [ack(A), retry(A)], failure, acked, "retried"],
    ["A.retry(5), A.ack, A.retry(9)", [retry(A, 5), ack(A), retry(A, 9)], success, 5, acked],
    ["A.retry(5), A.ack, A.retry(9), then throw", [retry(A, 5), ack(A), retry(A, 9)], failure, 5, "retried"],
    ["A.ack, retryAll(9)", [ack(A), retryAll(9)], success, acked, 9],
    ["A.ack, then throw", [ack(A)], failure, acked, "retried"],
    ["A.retry(5), ackAll", [retry(A, 5), ackAll], success, 5, acked],
    ["A.retry, retryAll(9)", [retry(A), retryAll(9)], success, 9, 9],
    ["A.retry(5), retryAll(9)", [retry(A, 5), retryAll(9)], success, 5, 9],
    ["ackAll, A.retry(5)", [ackAll, retry(A, 5)], success, acked, acked],
    ["ackAll, then throw", [ackAll], failure, acked, acked],
    ["retryAll(9), A.ack", [retryAll(9), ack(A)], success, 9, 9],
    ["retryAll(9), A.retry(5)", [retryAll(9), retry(A, 5)], success, 5, 9],
    ["ackAll, retryAll", [ackAll, retryAll()], failure, acked, acked],
    ["retryAll, ackAll", [retryAll(), ackAll], success, "retried", "retried"],
    ["retryAll(9), retryAll(3)", [retryAll(9), retryAll(3)], success, 9, 9],
    ["retryAll(0) is a delay", [retryAll(0), retryAll(3)], success, 0, 0],
    ["A.retry(0) is a delay", [retry(A, 0), retryAll(9)], success, 0, 9],
    ["A.fail", [fail(A)], success, "failed", acked],
    ["A.fail, then throw", [fail(A)], failure, "failed", "retried"],
    ["A.fail, A.ack", [fail(A), ack(A)], success, "failed", acked],
    ["A.ack, A.fail", [ack(A), fail(A)], success, acked, acked],
    ["A.fail, retryAll(9)", [fail(A), retryAll(9)], success, "failed 9", 9],
    ["A.fail(5), retryAll(9)", [fail(A, 5), retryAll(9)], success, "failed 5", 9],
    ["A.fail, ackAll", [fail(A), ackAll], success, "failed", acked],
    ["ackAll, A.fail", [ackAll, fail(A)], success, acked, acked],
    ["retryAll(9), A.fail(5)", [retryAll(9), fail(A, 5)], success, 5, 9],
    ["A.retry, A.fail(5)", [retry(A), fail(A, 5)], success, 5, acked],
    ["A.fail, A.retry(5)", [fail(A), retry(A, 5)], success, "failed 5", acked],
    ["A.fail(0) is a delay", [fail(A, 0), retryAll(9)], success, "failed 0", 9]
  ]

  it.each(rows)("%s", (_, calls, outcome, first, rest) => {
    assert.deepStrictEqual(finalise(reduce(calls, 3), outcome).map(render), [first, rest, rest])
  })
})

describe("isFinal", () => {
  it("is an ack, or a retry or failure with a delay of its own", () => {
    const verdicts = reduce([ack(0), retry(1), retry(2, 0), fail(3), fail(4, 0)], 6)
    assert.deepStrictEqual(verdicts.map(Acknowledgement.isFinal), [true, false, true, false, true, false])
  })
})
