/** The laws of a rate limit, for whole consumers in virtual time. */
import { Workload } from "@requeue/conformance"
import { BatchPolicy, Broker, RetryPolicy } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { assert, describe, test } from "vitest"
import { queue, run } from "./faultyBroker.ts"

/** Milliseconds, monotonic and with fractions. */
const now = Effect.map(Clock.Clock, (clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)

const limit = fc.record({ max: fc.integer({ min: 1, max: 4 }), per: fc.integer({ min: 50, max: 3000 }) })
const work = fc.record({
  limit,
  concurrency: fc.integer({ min: 1, max: 6 }),
  prefetch: fc.integer({ min: 0, max: 5 }),
  size: fc.integer({ min: 1, max: 3 }),
  immediate: fc.integer({ min: 0, max: 2 }),
  /** Milliseconds that the runs take. */
  lasting: fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 5 }),
  /** The runs that fail, by their number. */
  failing: fc.array(fc.nat({ max: 30 }), { maxLength: 8 })
})

const checkWindows = (starts: ReadonlyArray<number>, { max, per }: { readonly max: number; readonly per: number }) => {
  for (const [index, at] of starts.entries())
    if (index >= max) assert.isAtLeast(at - starts[index - max]!, per, `run ${index} of ${starts.join()}`)
}

describe("a rate limit", () => {
  test.each(["messages", "batches", "messages of batches"] as const)(
    "lets no more runs begin in any window, of %s",
    (kind) =>
      fc.assert(
        fc.asyncProperty(work, ({ concurrency, failing, immediate, lasting, limit: rateLimit, prefetch, size }) =>
          run(Workload.ids(20), (world) =>
            Effect.gen(function* () {
              const starts: Array<number> = []
              const handle = () =>
                Effect.gen(function* () {
                  const number = starts.push(yield* now) - 1
                  yield* Effect.sleep(lasting[number % lasting.length]!)
                  if (failing.includes(number)) return yield* Effect.fail(new Error("once"))
                })
              const retry = RetryPolicy.make({ immediate, maxRetries: "unlimited" })
              const options = { concurrency, prefetch, rateLimit, retry }
              const batch = BatchPolicy.make({ maxBatchSize: size, maxBatchTimeout: 100 })
              if (kind === "batches") yield* world.startBatch(queue, { ...options, batch }, handle)
              else yield* world.start(queue, kind === "messages" ? options : { ...options, batch }, handle)
              yield* world.untilEnded()
              checkWindows(starts, rateLimit)
              yield* world.balance
            })
          )
        ),
        { numRuns: 40 }
      )
  )

  test("lets a waiting message begin as soon as it allows it", () =>
    fc.assert(
      fc.asyncProperty(
        limit,
        fc.array(fc.integer({ min: 0, max: 1500 }), { minLength: 20, maxLength: 20 }),
        (rateLimit, gaps) =>
          run([], (world) =>
            Effect.gen(function* () {
              const starts: Array<number> = []
              yield* world.start(queue, { concurrency: 10, rateLimit }, () =>
                Effect.map(now, (at) => void starts.push(at))
              )
              const arrivals: Array<number> = []
              for (const [index, gap] of gaps.entries()) {
                yield* Effect.sleep(gap)
                arrivals.push(yield* now)
                yield* Workload.publishAll(yield* Broker.Broker, queue, [`m${index}`])
              }
              yield* Effect.sleep("5 minutes")
              const expected: Array<number> = []
              for (const [index, arrival] of arrivals.entries())
                expected.push(Math.max(arrival, (expected[index - rateLimit.max] ?? -rateLimit.per) + rateLimit.per))
              assert.deepStrictEqual(starts, expected)
            })
          )
      ),
      { numRuns: 40 }
    ))
})
