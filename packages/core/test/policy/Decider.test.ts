import { assert, describe, it } from "@effect/vitest"
import type { Verdict } from "../../src/policy/Acknowledgement.ts"
import * as Backoff from "../../src/policy/Backoff.ts"
import * as DeadLetterBudget from "../../src/policy/DeadLetterBudget.ts"
import * as Failure from "../../src/policy/Failure.ts"
import * as Decider from "../../src/policy/Decider.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import { delivery } from "../items.ts"

const now = 50_000
const make = (retry: RetryPolicy.Options = {}, more: Partial<Parameters<typeof Decider.make>[0]> = {}) =>
  Decider.make({
    queue: "work",
    retry: RetryPolicy.make(retry),
    retryDelay: undefined,
    longest: 10_000,
    budget: undefined,
    random: () => 0.5,
    wallClock: () => now,
    readFailure: (error) => Failure.make(error, now),
    ...more
  })

const failure = (properties: object = {}) => Failure.make(Object.assign(new Error("boom"), properties), now)
const error = { name: "Error", message: "boom" }
const ack = (by: Verdict["by"]): Verdict => ({ _tag: "Ack", by })
const retry = (by: Verdict["by"], delay?: number, backoff = true): Verdict => ({ _tag: "Retry", by, delay, backoff })

type Row = readonly [string, Decider.Decider, Verdict, Failure.Failure | undefined, Settlement.Settlement]

describe("settlement", () => {
  const permanent = failure({ permanent: true })
  const rows: ReadonlyArray<Row> = [
    ["an ack, though the handler failed", make(), ack("message"), failure(), Settlement.Ack],
    ["a failure", make(), retry("outcome"), failure(), Settlement.Retry(0, error)],
    ["a permanent failure", make(), retry("outcome"), permanent, Settlement.DeadLetter("permanent", "work.dlq", error)],
    ["an asked retry, though the failure is permanent", make(), retry("batch"), permanent, Settlement.Retry(0, error)],
    ["an own delay", make(), retry("message", 5), undefined, Settlement.Retry(5)],
    ["the consumer's delay", make({}, { retryDelay: 7 }), retry("message"), undefined, Settlement.Retry(7)],
    [
      "randomness",
      make({ backoff: Backoff.constant(8, { jitter: "full" }) }),
      retry("message"),
      undefined,
      Settlement.Retry(4)
    ],
    [
      "what the broker cannot keep is cut",
      make(),
      retry("outcome"),
      failure({ retryAfter: 3600 }),
      Settlement.Retry(10_000, error)
    ],
    [
      "the age since the first publish",
      make({ maxAge: now - 1 }),
      retry("outcome"),
      failure(),
      Settlement.DeadLetter("too-old", "work.dlq", error)
    ],
    ["exactly the age allowed", make({ maxAge: now }), retry("outcome"), failure(), Settlement.Retry(0, error)]
  ]
  it.each(rows)("%s", (_, decider, verdict, failure, expected) =>
    assert.deepStrictEqual(decider.settlement(delivery("a"), verdict, failure), expected)
  )

  it("takes the attempts from the delivery", () =>
    assert.deepStrictEqual(
      make({ maxAttempts: 3 }).settlement(delivery("a", { attempts: 3 }), retry("outcome"), failure()),
      Settlement.DeadLetter("retries-exhausted", "work.dlq", error)
    ))
})

describe("signal", () => {
  const uncounted = { classify: { uncounted: ["Error"] } }
  const rows: ReadonlyArray<readonly [string, Decider.Decider, Verdict, Failure.Failure | undefined, string]> = [
    ["an ack", make(), ack("message"), undefined, "Succeeded"],
    ["an ack, then a failure", make(), ack("message"), failure(), "Succeeded"],
    ["a failure", make(), retry("outcome"), failure(), "Failed"],
    ["an uncounted failure", make(uncounted), retry("outcome"), failure(), "Uncounted"],
    ["a permanent failure: the message is wrong", make(), retry("outcome"), failure({ permanent: true }), "Uncounted"],
    ["a drop", make(), retry("outcome"), failure({ _tag: "DropError" }), "Uncounted"],
    ["an asked retry", make(), retry("message"), undefined, "Failed"],
    ["an asked retry that opts out", make(), retry("message", 5, false), undefined, "Uncounted"],
    ["an asked retry, then an uncounted failure", make(uncounted), retry("message"), failure(), "Failed"],
    ["an asked retry of all that opts out", make(), retry("batch", undefined, false), failure(), "Uncounted"]
  ]
  it.each(rows)("%s", (_, decider, verdict, failure, expected) =>
    assert.strictEqual(decider.signal(verdict, failure), expected)
  )
})

describe("spend", () => {
  const dead = Settlement.DeadLetter("permanent", "work.dlq", error)

  it("without a budget allows everything", () => {
    const decider = make()
    for (let i = 0; i < 1000; i++) assert.strictEqual(decider.spend(dead), "Allowed")
  })

  it("allows as many dead letters as there are, and more when successes earn them", () => {
    const decider = make({}, { budget: DeadLetterBudget.make({ max: 2, perSuccess: 0.5 }) })
    const spend = (...settlements: ReadonlyArray<Settlement.Settlement>) => settlements.map(decider.spend).at(-1)
    assert.strictEqual(spend(dead, dead), "Allowed")
    assert.strictEqual(spend(dead), "Exhausted")
    decider.earn(Settlement.Ack)
    assert.strictEqual(spend(dead), "Exhausted")
    decider.earn(Settlement.Ack)
    assert.strictEqual(spend(dead), "Allowed")
    assert.strictEqual(spend(dead), "Exhausted")
  })

  it("is earned back by ten successes by default, not by nine", () => {
    const decider = make({}, { budget: DeadLetterBudget.make({ max: 1 }) })
    assert.strictEqual(decider.spend(dead), "Allowed")
    for (let i = 0; i < 9; i++) decider.earn(Settlement.Ack)
    assert.strictEqual(decider.spend(dead), "Exhausted")
    decider.earn(Settlement.Ack)
    assert.strictEqual(decider.spend(dead), "Allowed")
    for (let i = 0; i < 50; i++) decider.earn(Settlement.Ack)
    assert.deepStrictEqual([decider.spend(dead), decider.spend(dead)], ["Allowed", "Exhausted"])
  })

  it("counts nothing else", () => {
    const decider = make({}, { budget: DeadLetterBudget.make({ max: 1 }) })
    const free = [Settlement.Retry(0), Settlement.Release(), Settlement.Drop("dropped", error)]
    for (let i = 0; i < 50; i++) for (const each of free) assert.strictEqual(decider.spend(each), "Allowed")
    assert.deepStrictEqual([decider.spend(dead), decider.spend(dead)], ["Allowed", "Exhausted"])
  })

  it("counts what the policy discards as well: that is lost for good", () => {
    const decider = make({}, { budget: DeadLetterBudget.make({ max: 1 }) })
    const discarded = Settlement.Drop("retries-exhausted", error)
    assert.deepStrictEqual([decider.spend(discarded), decider.spend(discarded)], ["Allowed", "Exhausted"])
  })

  it("has back what was not stored, and never more than there was", () => {
    const decider = make({}, { budget: DeadLetterBudget.make({ max: 1 }) })
    decider.refund(dead)
    for (let i = 0; i < 5; i++) {
      assert.strictEqual(decider.spend(dead), "Allowed")
      decider.refund(Settlement.Ack)
      decider.refund(dead)
    }
    assert.deepStrictEqual([decider.spend(dead), decider.spend(dead)], ["Allowed", "Exhausted"])
  })
})
