/** What must be true of groups while settlements are lost and leases are not extended, and after that. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as Consumer from "../../src/consume/Consumer.ts"
import type { Received } from "../../src/message/Handler.ts"
import * as Backoff from "../../src/policy/Backoff.ts"
import * as BatchPolicy from "../../src/policy/BatchPolicy.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as FifoQueue from "./fifoQueue.ts"
import { ids } from "./groupLaws.ts"

/** Which of the calls one after the other are refused, over and over. */
const refusals = fc.array(fc.boolean(), { minLength: 1, maxLength: 12 })

export const plans = fc.record({
  ids,
  perGroup: fc.integer({ min: 1, max: 10 }),
  size: fc.integer({ min: 1, max: 12 }),
  concurrency: fc.integer({ min: 1, max: 4 }),
  isSingle: fc.boolean(),
  /** Milliseconds until a retry, and how long the handlers of some messages take. */
  backoff: fc.constantFrom(0, 10, 3000),
  slow: fc.array(fc.nat(24), { maxLength: 3 }),
  flaky: fc.array(fc.nat(24), { maxLength: 8 }),
  /** For how many seconds there are faults. */
  lasts: fc.integer({ min: 0, max: 12 }),
  settle: refusals,
  extend: refusals
})
type Plan = typeof plans extends fc.Arbitrary<infer A> ? A : never

const lease = 900

/** Milliseconds that all takes, when there are no faults any more. */
const restOf = ({ backoff, flaky }: Plan): number => 10_000 + flaky.length * backoff

/** Handles messages as planned, and writes down those that run out of turn: before others, or when they are done. */
const handling = (plan: Plan) => {
  const faults: Array<string> = []
  const done = new Set<string>()
  const failed = new Set<string>()
  const atWork = new Set<string>()
  const nth = (numbers: ReadonlyArray<number>) => new Set(numbers.flatMap((number) => plan.ids[number] ?? []))
  const [slow, flaky] = [nth(plan.slow), nth(plan.flaky)]

  const handle = (got: ReadonlyArray<Received<unknown>>) =>
    Effect.gen(function* () {
      const groups = Map.groupBy(
        got.map(({ id }) => id),
        (id) => id.slice(0, 1)
      )
      for (const [group, mine] of groups) {
        if (atWork.has(group)) faults.push(`two batches have ${group}`)
        atWork.add(group)
        const next = plan.ids.filter((id) => id.startsWith(group) && !done.has(id)).slice(0, mine.length)
        if (mine.join() !== next.join()) faults.push(`${mine.join()} instead of ${next.join()}`)
      }
      yield* Effect.sleep(got.some(({ id }) => slow.has(id)) ? 2 * lease : 5)
      for (const message of got) {
        const isRetried = flaky.has(message.id) && !failed.has(message.id)
        failed.add(message.id)
        if (isRetried) message.fail(new Error("no"))
        else message.ack()
        // Those behind a retried one of their group are run again with it.
        const mine = groups.get(message.id.slice(0, 1))!
        if (isRetried && mine.includes(message.id)) mine.splice(mine.indexOf(message.id))
      }
      for (const [group, mine] of groups) {
        atWork.delete(group)
        for (const id of mine) done.add(id)
      }
    })
  return { handle, faults }
}

/**
 * Lives as planned; fails when a message runs out of turn or after it was done, or is not settled soon after the faults: as
 * long after them as they lasted, since pauses double.
 */
export const live = (plan: Plan): Effect.Effect<void, Consumer.StartError> =>
  Effect.gen(function* () {
    const until = plan.lasts * 1000
    const calls = { settle: 0, extend: 0 }
    let began: number | undefined
    const queue = FifoQueue.make(plan.ids, plan.perGroup, {
      duration: lease,
      refuses: (call, now) => {
        began ??= now
        return now - began < until && plan[call][calls[call]++ % plan[call].length]!
      }
    })
    const { faults, handle } = handling(plan)
    const options: Consumer.Options = {
      retry: RetryPolicy.make({ maxRetries: "unlimited", backoff: Backoff.constant(plan.backoff) }),
      concurrency: plan.concurrency
    }
    const batch = BatchPolicy.make({ maxBatchSize: plan.size, maxBatchTimeout: 20 })
    const started = plan.isSingle
      ? Consumer.start("q", { ...options, batch }, (message) => handle([message]))
      : Consumer.startBatch("q", { ...options, batch }, ({ messages }) => handle(messages))
    const step = 50
    // It is closed by nobody: what is left would wait for a clock that stands still.
    const scope = yield* Scope.make()
    yield* Effect.gen(function* () {
      yield* started
      for (let time = 0; time < 2 * until + restOf(plan) && queue.left().length > 0; time += step)
        yield* TestClock.adjust(step)
    }).pipe(Scope.provide(scope), Effect.provide(queue.layer))

    assert.deepStrictEqual(faults, [])
    assert.deepStrictEqual(queue.left(), [])
  }).pipe(Effect.provide(TestClock.layer()))
