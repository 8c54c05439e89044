/** Long delays and twelve hours of visibility, in virtual time: exactly when each message arrives. */
import { RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { hour, minute, on, type Run, second, tagged, until } from "./world.ts"

/** Milliseconds that SQS's whole seconds and a poll add to a delay. */
const bound = 2 * second

const queue = "orders"

describe("a delay", () => {
  test("of 11 hours for a retry is by visibility: there is no copy", () =>
    on({ waitTime: 20 * second }, ({ broker, calls, consume, counts, send }) =>
      Effect.gen(function* () {
        const runs: Array<Run> = []
        const one = yield* broker()
        yield* consume(one, queue, runs, {}, (message) => {
          if (message.attempts === 1) message.retry({ delay: 11 * hour })
        })
        yield* send(one, queue, ["a"])
        yield* until("the first run", () => runs.length === 1)
        yield* Effect.sleep(minute)
        assert.deepStrictEqual(counts(queue), [0, 1, 0])
        const [copies, changes] = [calls("SendMessageBatch"), calls("ChangeMessageVisibilityBatch")]
        yield* Effect.sleep(11 * hour)
        const [first, second, ...others] = runs
        assert.deepStrictEqual([second?.attempts, others.length], [2, 0])
        assert.isAtLeast(second!.at - first!.at, 11 * hour)
        assert.isAtMost(second!.at - first!.at, 11 * hour + bound)
        assert.deepStrictEqual([calls("SendMessageBatch"), calls("ChangeMessageVisibilityBatch")], [copies, changes])
      })
    ))

  test("of 13 hours for a retry, beyond any visibility, is by copies of 15 minutes, and counts once", () =>
    on({ waitTime: 20 * second }, ({ broker, calls, consume, send, untilEmpty }) =>
      Effect.gen(function* () {
        const runs: Array<Run> = []
        const one = yield* broker()
        yield* consume(one, queue, runs, {}, (message) => {
          if (message.attempts === 1) message.retry({ delay: 13 * hour })
        })
        yield* send(one, queue, ["a"])
        const copies = calls("SendMessageBatch")
        yield* Effect.sleep(13 * hour + minute)
        const [first, second, ...others] = runs
        assert.deepStrictEqual([first?.attempts, second?.attempts, others.length], [1, 2, 0])
        assert.isAtLeast(second!.at - first!.at, 13 * hour)
        assert.isAtMost(second!.at - first!.at, 13 * hour + bound)
        assert.isAtLeast(calls("SendMessageBatch") - copies, 52)
        yield* untilEmpty(queue)
      })
    ))

  test("of 40 minutes for a send is by hops, none of which counts", () =>
    on({ waitTime: 20 * second }, ({ broker, consume, now, send, untilEmpty }) =>
      Effect.gen(function* () {
        const runs: Array<Run> = []
        const one = yield* broker()
        yield* consume(one, queue, runs)
        const begun = now()
        yield* send(one, queue, ["a"], { delay: 40 * minute })
        yield* Effect.sleep(41 * minute)
        assert.deepStrictEqual(
          runs.map(({ attempts }) => attempts),
          [1]
        )
        assert.isAtLeast(runs[0]!.at - begun, 40 * minute)
        assert.isAtMost(runs[0]!.at - begun, 40 * minute + bound)
        yield* untilEmpty(queue)
      })
    ))
})

/** 33 delays from 0 to 11 s: whole seconds, a little more, and a little less. */
const mixed = Array.from({ length: 11 }, (_, index) => [0, 331, 997].map((more) => index * second + more)).flat()

describe("330 delays of 0 to 11 s: none early, none late by more than SQS's whole seconds", () => {
  const names = Array.from({ length: 330 }, (_, index) => `m${index}`)
  const delayOf = (id: string): number => mixed[Number(id.slice(1)) % mixed.length]!
  const check = (begun: ReadonlyMap<string, number>, runs: ReadonlyArray<Run>): void => {
    assert.lengthOf(runs, names.length)
    for (const { at, id } of runs) {
      const late = at - begun.get(id)! - delayOf(id)
      assert.isAtLeast(late, 0, id)
      assert.isAtMost(late, bound, id)
    }
  }

  test.each([
    ["retries, by visibility", 60_000],
    ["retries, by delayed copies", 0]
  ])("%s", (_, inFlightLimit) =>
    on({ inFlightLimit }, ({ broker, consume, now, send }) =>
      Effect.gen(function* () {
        const [runs, asked]: [Array<Run>, Map<string, number>] = [[], new Map()]
        const one = yield* broker()
        yield* consume(one, queue, runs, { concurrency: 400 }, (message) => {
          if (asked.has(message.id)) return
          asked.set(message.id, now())
          message.retry({ delay: delayOf(message.id) })
        })
        yield* send(one, queue, names)
        yield* until("all", () => runs.length === 2 * names.length)
        check(
          asked,
          runs.filter(({ attempts }) => attempts === 2)
        )
      })
    )
  )

  test("sends", () =>
    on({}, ({ broker, consume, now, send }) =>
      Effect.gen(function* () {
        const [runs, asked]: [Array<Run>, Map<string, number>] = [[], new Map()]
        const one = yield* broker()
        yield* consume(one, queue, runs, { concurrency: 400 })
        for (const delay of mixed) {
          const some = names.filter((id) => delayOf(id) === delay)
          for (const id of some) asked.set(id, now())
          yield* send(one, queue, some, { delay })
        }
        yield* until("all", () => runs.length === names.length)
        check(asked, runs)
      })
    ))
})

// Twelve hours of visibility count from the receipt, and SQS refuses what is beyond instead of cutting it.
describe("100 s after its receipt, a retry", () => {
  test.each<[string, delay: number, numbers: readonly [number, number, number]]>([
    ["that still fits is hidden", 12 * hour - 120 * second, [0, 1, 0]],
    ["that would have fitted at its receipt is a copy", 12 * hour - 50 * second, [0, 0, 1]]
  ])("%s", (_, delay, numbers) =>
    on({ visibilityTimeout: 300 * second }, ({ broker, calls, consume, send, untilCounts }) =>
      Effect.gen(function* () {
        const [runs, { count, onEvent }] = [[] as Array<Run>, tagged()]
        const one = yield* broker()
        yield* consume(one, queue, runs, { onEvent }, (message) =>
          Effect.andThen(
            Effect.sleep(100 * second),
            Effect.sync(() => message.retry({ delay }))
          )
        )
        yield* send(one, queue, ["a"])
        yield* until("its retry", () => count("RetryScheduled") === 1)
        yield* untilCounts(queue, ...numbers)
        const before = calls("ChangeMessageVisibilityBatch")
        yield* Effect.sleep(14 * minute)
        assert.strictEqual(calls("ChangeMessageVisibilityBatch"), before, "an extension of what is settled")
        assert.deepStrictEqual([count("Received"), count("SettleFailed"), count("LeaseLost")], [1, 0, 0])
      })
    )
  )
})

describe("the quota of messages in flight", () => {
  test("is left alone by retries that are copies", () =>
    on({ inFlightLimit: 0 }, ({ broker, consume, send, untilCounts }) =>
      Effect.gen(function* () {
        const one = yield* broker()
        yield* consume(one, queue, [], { concurrency: 30, retryDelay: 10 * minute }, () => Effect.fail("no"))
        yield* send(
          one,
          queue,
          Array.from({ length: 30 }, (_, index) => `m${index}`)
        )
        yield* untilCounts(queue, 0, 0, 30)
      })
    ))

  // Over the quota SQS delivers nothing; long polls then end empty, as if there were nothing.
  test("that hidden messages fill holds up the queue until they are due", () =>
    on({ inFlight: 20 }, ({ broker, consume, send, untilEmpty }) =>
      Effect.gen(function* () {
        const runs: Array<Run> = []
        const one = yield* broker()
        yield* send(
          one,
          queue,
          Array.from({ length: 60 }, (_, index) => `m${index}`)
        )
        yield* consume(one, queue, runs, { concurrency: 40, retryDelay: 2 * second }, ({ attempts }) =>
          attempts === 1 ? Effect.fail("no") : Effect.void
        )
        yield* untilEmpty(queue)
        assert.strictEqual(new Set(runs.map(({ id }) => id)).size, 60)
      })
    ))
})

// SQS moves messages by its own count of receives, without the error that was their end.
test.each([5, 15])(
  "SQS's redrive policy after %i receives beside ours: four runs, then one dead letter with its error",
  (maxReceiveCount) =>
    on({ maxReceiveCount }, ({ broker, consume, idsIn, messages, send, untilEmpty }) =>
      Effect.gen(function* () {
        const runs: Array<Run> = []
        const one = yield* broker()
        const retry = RetryPolicy.make({ maxRetries: 3, maxDeliveries: maxReceiveCount - 1 })
        yield* consume(one, queue, runs, { retry }, () => Effect.fail(new Error("no")))
        yield* send(one, queue, ["a"])
        yield* until("four runs", () => runs.length === 4)
        yield* untilEmpty(queue)
        assert.deepStrictEqual(idsIn(`${queue}.dlq`), ["a"])
        const [letter] = messages(`${queue}.dlq`)
        assert.include(letter?.content.attributes["requeue"]?.StringValue, "retries-exhausted")
      })
    )
)
