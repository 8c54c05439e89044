/** What `requeue plan` and its like are told of a memory broker. */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, RetryPolicy } from "@requeue/core"
import { Plan } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { adapter } from "../src/index.ts"

const operations = adapter.operations!
const url = new URL("memory:")
const retry = RetryPolicy.make({
  maxRetries: 6,
  backoff: Backoff.linear("10 seconds"),
  deadLetter: { routes: { undecodable: "broken" } }
})
const request = { queue: "orders", retry }

describe("a plan", () => {
  it.effect("has the queue and where its dead letters go", () =>
    Effect.map(operations.plan(request, url), ({ objects }) =>
      assert.deepStrictEqual(
        objects.map(({ name }) => name),
        ["orders", "orders.dlq", "broken"]
      )
    )
  )

  it.effect("is drawn", () =>
    Effect.map(operations.plan(request, url), (plan) =>
      assert.deepStrictEqual(Plan.mermaid(plan).split("\n"), [
        "flowchart LR",
        '  n0["orders"] -->|"retry after 10s, 20s, 30s, 40s, 50s, …"| n0',
        '  n0 -->|"retries-exhausted, permanent, too-old, too-many-deliveries"| n1["orders.dlq"]',
        '  n0 -->|"undecodable"| n2["broken"]'
      ])
    )
  )

  it("says what there is to say of no retries, and of retries at once", () => {
    assert.deepStrictEqual(Plan.retries("q", RetryPolicy.make({ maxRetries: 0 })), [])
    assert.strictEqual(Plan.retries("q", RetryPolicy.make())[0]?.label, "retry at once")
    assert.deepStrictEqual(Plan.deadLetters("q", RetryPolicy.make({ deadLetter: "discard" })), [])
  })

  it.effect("cannot be compared from outside of the process", () =>
    Effect.gen(function* () {
      const { capabilities, inspect } = yield* operations.operate(url, { maxBodySize: 5 })
      const { objects } = yield* inspect(request)
      assert.deepStrictEqual(new Set(objects.map(({ state }) => state)), new Set(["unknown"]))
      assert.strictEqual(capabilities.maxBodySize, 5)
    })
  )

  it.effect("of wrong options is refused", () =>
    Effect.gen(function* () {
      for (const refused of [operations.plan(request, url, { max: 5 }), operations.operate(url, { max: 5 })]) {
        assert.strictEqual(
          (yield* Effect.flip(refused as Effect.Effect<unknown, { readonly field: string }>)).field,
          "max"
        )
      }
    })
  )
})
