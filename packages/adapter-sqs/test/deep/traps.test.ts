/** What SQS does to those who do not know it: each of these has lost, doubled or blocked somebody's messages. */
import { type BrokerError, type Event, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { movedWith } from "../real/clock.ts"
import { firstOf, strict } from "./strict.ts"
import {
  consume,
  drain,
  has,
  ids,
  idOf,
  left,
  no,
  on,
  outgoing,
  publishAll,
  queueName,
  until,
  untilEmpty,
  urlOf,
  type Run
} from "../real/world.ts"

// At once, but for those that move the clock, and each that wants faults behind a proxy of its own.
const { another, behind, proxy, url } = await strict()

const failures = (into: Array<string>) => (event: Event.Event) => {
  if (event._tag === "SettleFailed" || event._tag === "LeaseLost") into.push(String(event.error))
}

const hour = 3_600_000

// Twelve hours of visibility count from the receipt, and SQS refuses what is beyond instead of cutting it.
describe("100 s after its receipt, a retry", () => {
  test.each<[string, delay: number, numbers: readonly [number, number, number]]>([
    ["that still fits is hidden", 12 * hour - 120_000, [0, 1, 0]],
    ["that would have fitted at its receipt is a copy", 12 * hour - 50_000, [0, 0, 1]]
  ])("%s", async (_, delay, numbers) => {
    const moved = movedWith(proxy)
    const queue = queueName("total")
    const [failed, tags]: [Array<string>, Array<string>] = [[], []]
    const onEvent = (event: Event.Event) => {
      tags.push(event._tag)
      failures(failed)(event)
    }
    await on(
      { url, visibilityTimeout: 300_000 },
      (broker) =>
        Effect.gen(function* () {
          yield* consume(queue, [], { onEvent }, (message) =>
            message.id === "b"
              ? Effect.void
              : Effect.andThen(
                  Effect.promise(() => moved.forward(100_000)),
                  Effect.sync(() => message.retry({ delay }))
                )
          )
          yield* broker.publish([outgoing(queue, "a", { now: moved.now() })])
          yield* until("its retry", () => tags.includes("RetryScheduled"))
          yield* until("its place", () => has(behind, queue, ...numbers))
          const before = proxy.calls()["ChangeMessageVisibilityBatch"]
          yield* Effect.promise(() => moved.forward(840_000))
          // By the time that another one is done, an extension would have been asked for.
          yield* broker.publish([outgoing(queue, "b", { now: moved.now() })])
          yield* until("the end of b", () => tags.includes("Succeeded"))
          yield* until("b gone", () => has(behind, queue, ...numbers))
          assert.strictEqual(proxy.calls()["ChangeMessageVisibilityBatch"], before, "an extension of what is settled")
          assert.strictEqual(tags.filter((tag) => tag === "Received").length, 2, "it came early")
        }),
      moved.run
    )
    assert.deepStrictEqual(failed, [])
  })
})

// All batch calls answer 200 though entries have failed.
test.concurrent("entries that fail for a moment are asked again: none is lost, none is told as failed", async () => {
  await using own = await another()
  const queue = queueName("partial")
  const [runs, failed, tags]: [Array<Run>, Array<string>, Array<string>] = [[], [], []]
  await on({ url: own.url }, (broker) =>
    Effect.gen(function* () {
      const faults = ["SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"].map((action) =>
        own.failEntries({ action, times: 2 }, 3)
      )
      yield* publishAll(broker, queue, ids(40))
      const onEvent = (event: Event.Event) => {
        tags.push(event._tag)
        failures(failed)(event)
      }
      yield* consume(queue, runs, { onEvent, concurrency: 20, retryDelay: 1000 }, ({ attempts }) =>
        attempts === 1 ? no : Effect.void
      )
      yield* until("all", () => tags.filter((tag) => tag === "Succeeded").length === 40)
      yield* untilEmpty(behind, queue)
      for (const fault of faults) assert.strictEqual(fault.left(), 0)
    })
  )
  assert.deepStrictEqual(failed, [])
  assert.strictEqual(runs.length, 80)
  assert.strictEqual(tags.filter((tag) => tag === "RetryScheduled").length, 40)
})

// A poll that is cut off goes on in SQS, and hides what it finds until the visibility timeout ends.
test.concurrent("a consumer that stops in the middle of a poll gives back what the poll still brings", async () => {
  await using own = await another()
  const queue = queueName("ghost")
  const runs: Array<Run> = []
  await on({ url: own.url, waitTime: 3000, visibilityTimeout: 600_000 }, (broker) =>
    Effect.gen(function* () {
      const polls = () => own.calls()["ReceiveMessage"] ?? 0
      const stopped = Effect.scoped(
        Effect.gen(function* () {
          const before = polls()
          const consumer = yield* consume(queue, runs)
          yield* until("a poll", () => polls() > before)
          // The scope closes now, and waits for the poll.
          const closing = until("the end", () => consumer.stats().state !== "running")
          yield* Effect.forkDetach(Effect.andThen(closing, broker.publish([outgoing(queue, "late")])))
        })
      )
      yield* stopped
      assert.deepStrictEqual(runs, [])
      yield* until("its return", () => has(behind, queue, 1, 0, 0))
      yield* consume(queue, runs)
      yield* until("its run", () => runs.length === 1)
    })
  )
  // The receive that nobody wanted is all that may have been counted.
  assert.isAtMost(runs[0]!.attempts, 2)
})

// SQS moves messages by its own count of receives, without the error that was their end.
describe.concurrent("SQS's redrive policy beside ours of 3 retries", () => {
  test.each([5, 15])(
    "after %i receives: four runs, then one dead letter with its error; redriven, it runs again",
    async (maxReceiveCount) => {
      const queue = queueName("redrive")
      const runs: Array<Run> = []
      await on({ url, maxReceiveCount }, (broker) =>
        Effect.gen(function* () {
          const consumer = Effect.scoped(
            Effect.gen(function* () {
              yield* consume(
                queue,
                runs,
                { retry: RetryPolicy.make({ maxRetries: 3, maxDeliveries: maxReceiveCount - 1 }) },
                () => no
              )
              yield* until("four runs", () => runs.length === 4)
              yield* untilEmpty(behind, queue)
            })
          )
          yield* broker.publish([outgoing(queue, "a")])
          yield* consumer
          const letters = yield* DeadLetters.make(`${queue}.dlq`)
          const [letter, ...others] = yield* letters.list()
          assert.deepStrictEqual(others, [])
          assert.deepInclude(letter?.origin, { queue, attempts: 4, reason: "retries-exhausted" })
          assert.strictEqual(letter?.origin?.error.message, "no")
          assert.strictEqual((yield* letters.redrive()).redriven, 1)
          runs.length = 0
          yield* consumer
        })
      )
      assert.deepStrictEqual(
        runs.map(({ attempts }) => attempts),
        [1, 2, 3, 4]
      )
      assert.deepStrictEqual((await drain(behind, `${queue}.dlq`)).map(idOf), ["a"])
    }
  )
})

// A hidden message is in flight, and a queue has no more than so many of those.
test.concurrent("retries by copies leave the quota of messages in flight alone", async () => {
  const queue = queueName("quota")
  await on({ url, inFlightLimit: 0 }, (broker) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      yield* publishAll(broker, queue, ids(30))
      yield* consume(queue, runs, { concurrency: 30, retryDelay: 600_000 }, () => no)
      yield* until("thirty copies", () => has(behind, queue, 0, 0, 30))
    })
  )
})

// Over the quota SQS hands out nothing; long polls then end empty, as if there were nothing.
test.concurrent("a queue whose quota is full of hidden messages goes on when they are due", async () => {
  await using small = await another({ inFlight: 20 })
  const queue = queueName("full")
  const runs: Array<Run> = []
  await on({ url: small.url }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(60))
      yield* consume(queue, runs, { concurrency: 40, retryDelay: 2000 }, ({ attempts }) =>
        attempts === 1 ? no : Effect.void
      )
      yield* untilEmpty(behind, queue)
    })
  )
  assert.strictEqual(new Set(runs.map(({ id }) => id)).size, 60)
})

describe("a FIFO queue", async () => {
  const fifo = await firstOf("elasticmq", "fauxqs")
  const send = async (queue: string, ...names: ReadonlyArray<string>) => {
    const QueueUrl = await urlOf(fifo.behind, queue)
    for (const id of names) {
      await fifo.behind.sendMessage({
        QueueUrl,
        MessageBody: JSON.stringify(id),
        MessageGroupId: id.slice(0, 1),
        MessageDeduplicationId: id
      })
    }
  }

  test.concurrent(`of ${fifo.name}: a retry blocks its group, and no other`, async () => {
    const queue = `${queueName("group")}.fifo`
    const runs: Array<{ readonly name: string; readonly at: number }> = []
    const has = (one: string) => runs.some(({ name }) => name === one)
    await on({ url: fifo.url }, () =>
      Effect.gen(function* () {
        // It fails until another group has had its turn.
        const retry = RetryPolicy.make({ maxRetries: "unlimited" })
        yield* Effect.scoped(consume(queue, [], { retry }))
        yield* Effect.promise(() => send(queue, "a1", "a2", "b1", "a3"))
        yield* consume(queue, [], { concurrency: 10, retry, retryDelay: 1000 }, ({ attempts, body }) => {
          runs.push({ name: body, at: Date.now() })
          return body === "a1" && (attempts === 1 || !has("b1")) ? no : Effect.void
        })
        yield* until("a run of a3", () => has("a3"))
        yield* untilEmpty(fifo.behind, queue)
      })
    )
    const as = runs.filter(({ name }) => name.startsWith("a"))
    const retried = as.filter(({ name }) => name === "a1")
    assert.deepStrictEqual(
      as.map(({ name }) => name),
      [...retried.map(() => "a1"), "a2", "a3"]
    )
    assert.isAtLeast(retried.length, 2)
    for (const [index, { at }] of retried.slice(1).entries()) assert.isAtLeast(at - retried[index]!.at, 1000, "early")
    assert.isBelow(
      runs.findIndex(({ name }) => name === "b1"),
      runs.findLastIndex(({ name }) => name === "a1"),
      "b1 waited"
    )
  })

  // SQS refuses an expired handle there, and an answer of 200 has failed entries.
  test("a handle that has expired is told of as a lost lease, not as success", async () => {
    const moved = movedWith(proxy)
    const queue = `${queueName("expired")}.fifo`
    const errors: Array<BrokerError.BrokerError> = []
    await on({ url, visibilityTimeout: 3000 }, (broker) =>
      Effect.gen(function* () {
        const onEvent = (event: Event.Event) => {
          if (event._tag === "SettleFailed") errors.push(event.error as BrokerError.BrokerError)
        }
        // Without a poll meanwhile: the delivery after it would be settled in its place.
        yield* consume(queue, [], { onEvent, prefetch: 0 }, ({ attempts }) =>
          // The server's clock alone goes forward: ours does not know that the lease has ended.
          attempts === 1 ? Effect.promise(() => moved.forward(4000)) : Effect.void
        )
        yield* broker.publish([outgoing(queue, "a")])
        yield* until("a failure", () => errors.length > 0)
      })
    )
    assert.strictEqual(errors[0]?.reason, "LeaseLost")
    assert.match(errors[0]?.message ?? "", /expired/)
    assert.isAtMost(await left(behind, queue), 1)
  })
})
