/** The options of a redrive in stages: which queues it watches, and for how long. */
import { Backoff, RetryPolicy } from "@requeue/core"
import * as Option from "effect/Option"
import { assert, it } from "vitest"
import type * as DeadLetterTarget from "../src/DeadLetterTarget.ts"
import * as RedriveStages from "../src/RedriveStages.ts"

const backoff = Backoff.constant("1 minute")

/** Queues whose letters were all in `old`, and fail into other ones now. */
const configured = [
  { name: "orders", options: { retry: RetryPolicy.make({ maxRetries: 1, backoff, deadLetter: "orders.dead" }) } },
  { name: "bills", options: { retry: RetryPolicy.make({ maxRetries: 5, backoff, deadLetter: "old" }) } }
]

const flags: RedriveStages.Flags = {
  config: Option.none(),
  broker: Option.none(),
  url: Option.none(),
  adapter: Option.none(),
  queue: [],
  stages: Option.some([1]),
  stopAt: Option.none(),
  wait: Option.none(),
  operation: Option.none()
}

const of = (letters: ReadonlyArray<string>, to?: string, known: Partial<DeadLetterTarget.DeadLetterTarget> = {}) => {
  // The broker is not asked.
  const target = { configured, of: [], queues: letters, ...known } as unknown as DeadLetterTarget.DeadLetterTarget
  const { wait, watch } = RedriveStages.of(flags, target, Option.fromUndefinedOr(to), false)
  assert.isFunction(watch)
  return { wait, watched: (queue: string) => [...new Set((watch as (queue: string) => ReadonlyArray<string>)(queue))] }
}

it("watches the dead-letter queues of the policy of each queue, also with --dlq", () => {
  const { watched } = of(["old"])
  assert.deepStrictEqual(watched("orders"), ["old", "orders.dead"])
  assert.deepStrictEqual(watched("bills"), ["old"])
  assert.deepStrictEqual(watched("unknown"), ["old", "unknown.dlq"])
})

it("waits for the retries of the queues whose letters these are", () => {
  assert.strictEqual(of(["old"]).wait, 6 * 60_000)
  assert.strictEqual(of(["orders.dead"]).wait, 2 * 60_000)
  assert.strictEqual(of(["foreign"]).wait, 60_000)
  assert.strictEqual(of(["old"], "orders").wait, 2 * 60_000)
})

it("knows the policy of a queue that is asked for on another broker than its own", () => {
  const { wait, watched } = of(["orders.dead"], undefined, { configured: [], of: configured.slice(0, 1) })
  assert.deepStrictEqual([wait, watched("orders")], [2 * 60_000, ["orders.dead"]])
})
