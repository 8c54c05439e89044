/** What must be true of groups: lives of consumers on a broker that keeps the order of groups. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as Consumer from "../../src/consume/Consumer.ts"
import type * as Codec from "../../src/message/Codec.ts"
import type { Received } from "../../src/message/Handler.ts"
import * as QueueDefinition from "../../src/message/QueueDefinition.ts"
import * as Backoff from "../../src/policy/Backoff.ts"
import * as BatchPolicy from "../../src/policy/BatchPolicy.ts"
import * as ConsumerBackoff from "../../src/policy/ConsumerBackoff.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as FifoQueue from "./fifoQueue.ts"

/** A codec that takes longer for some bodies than for those behind them. */
const slow: Codec.Codec<unknown> = {
  contentType: undefined,
  encode: () => new Uint8Array(),
  decode: (body) => {
    const text = new TextDecoder().decode(body)
    return Number(text.slice(2, -1)) % 2 === 0 ? text : Promise.resolve(text)
  }
}

export const ids = fc.uniqueArray(
  fc.tuple(fc.constantFrom("a", "b", "c"), fc.integer({ min: 10, max: 40 })).map(([group, n]) => `${group}${n}`),
  { minLength: 1, maxLength: 25 }
)
const places = (maxLength: number) => fc.array(fc.nat(24), { maxLength })
export const plans = fc.record({
  ids,
  perGroup: fc.integer({ min: 1, max: 10 }),
  size: fc.integer({ min: 1, max: 12 }),
  concurrency: fc.integer({ min: 1, max: 4 }),
  prefetch: fc.integer({ min: 0, max: 20 }),
  kind: fc.constantFrom("single", "throws", "calls"),
  isSlow: fc.boolean(),
  backsOff: fc.boolean(),
  immediate: fc.integer({ min: 0, max: 1 }),
  doomed: places(3),
  flaky: places(8)
})
type Plan = typeof plans extends fc.Arbitrary<infer A> ? A : never

/** Handles messages as planned, and writes down what is wrong with the batches. */
const handling = (plan: Plan, left: () => ReadonlyArray<string>) => {
  const faults: Array<string> = []
  const seen = new Map<string, number>()
  const atWork = new Set<string>()
  const acked = new Set<string>()
  const nth = (numbers: ReadonlyArray<number>) => new Set(numbers.flatMap((number) => plan.ids[number] ?? []))
  const [doomed, flaky] = [nth(plan.doomed), nth(plan.flaky)]

  const begin = (mine: ReadonlyArray<string>, group: string): void => {
    if (atWork.has(group)) faults.push(`two batches have ${group}`)
    atWork.add(group)
    // What is in front of the first is gone, or was acked in this batch, which runs again; and the batch skips none.
    const isThere = (id: string): boolean => left().includes(id) && (mine.includes(id) || !acked.has(id))
    const waiting = plan.ids.filter((id) => id.startsWith(group) && isThere(id))
    if (mine.join() !== waiting.slice(0, mine.length).join()) faults.push(`${mine.join()} of ${waiting.join()}`)
  }

  const handle = (got: ReadonlyArray<Received<unknown>>) =>
    Effect.gen(function* () {
      const groups = new Set(got.map(({ id }) => id.slice(0, 1)))
      for (const group of groups)
        begin(
          got.map(({ id }) => id).filter((id) => id.startsWith(group)),
          group
        )
      yield* Effect.sleep(5)
      for (const group of groups) atWork.delete(group)
      const failed = got.filter(({ id }) => {
        const times = (seen.get(id) ?? 0) + 1
        seen.set(id, times)
        return doomed.has(id) || (flaky.has(id) && times === 1)
      })
      if (failed.length === 0) return undefined
      for (const message of got.toReversed()) {
        if (!failed.includes(message) && Number(message.id.slice(1)) % 2 === 0) {
          message.ack()
          acked.add(message.id)
        }
        if (failed.includes(message) && plan.kind === "calls") message.fail(new Error("no"))
      }
      return plan.kind === "calls" ? undefined : yield* Effect.fail(new Error("no"))
    })
  return { handle, faults, seen, doomed, flaky }
}

/** Lives as planned; fails when a message leaves its queue before those in front of it, is lost, or is given up unseen. */
export const live = (
  plan: Plan,
  more: Pick<Consumer.Options, "rateLimit"> = {}
): Effect.Effect<void, Consumer.StartError> =>
  Effect.gen(function* () {
    const queue = FifoQueue.make(plan.ids, plan.perGroup)
    const { doomed, faults, flaky, handle, seen } = handling(plan, queue.left)
    const options: Consumer.Options = {
      ...more,
      retry: RetryPolicy.make({
        maxRetries: 2,
        maxDeliveries: 3,
        immediate: plan.immediate,
        backoff: Backoff.constant(10)
      }),
      concurrency: plan.concurrency,
      prefetch: plan.prefetch,
      consumerBackoff: plan.backsOff ? ConsumerBackoff.nsq({ multiplier: 20 }) : ConsumerBackoff.off
    }
    const definition = QueueDefinition.make("q", plan.isSlow ? { codec: slow } : {})
    const batch = BatchPolicy.make({ maxBatchSize: plan.size, maxBatchTimeout: 20 })
    const started =
      plan.kind === "single"
        ? Consumer.start(definition, { ...options, batch }, (message) => handle([message]))
        : Consumer.startBatch(definition, { ...options, batch }, ({ messages }) => handle(messages))
    yield* Effect.gen(function* () {
      yield* started
      for (let round = 0; round < 2000 && queue.left().length > 0; round++) {
        // After twenty seconds, all that is left are pauses of a consumer whose handlers fail.
        yield* TestClock.adjust(round < 1000 ? 20 : 1000)
        if (plan.isSlow) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      }
    }).pipe(Effect.scoped, Effect.provide(queue.layer))

    assert.deepStrictEqual(faults, [])
    assert.deepStrictEqual(queue.left(), [])
    for (const group of ["a", "b", "c"]) {
      const mine = queue.acked.filter((id) => id.startsWith(group))
      assert.deepStrictEqual(
        mine,
        plan.ids.filter((id) => mine.includes(id))
      )
    }
    assert.sameMembers([...queue.acked, ...queue.letters], [...plan.ids])
    for (const id of queue.letters) assert.isTrue(seen.has(id), `${id} was given up unseen`)
    if (plan.kind !== "throws") assert.includeMembers([...doomed, ...flaky], queue.letters)
    if (plan.kind === "single") assert.sameMembers(queue.letters, [...doomed])
  }).pipe(Effect.provide(TestClock.layer()))
