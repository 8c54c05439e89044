/** The order of FIFO queues, with handlers that fail. */
import { Backoff, BatchPolicy, Consumer, ConsumerBackoff, type Event, Producer, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { firstOf } from "./strict.ts"
import { on, outgoing, queueName, type Run, until, untilEmpty } from "../real/world.ts"

const { behind, name, url } = await firstOf("elasticmq", "fauxqs")

const groups = ["a", "b", "c"] as const
const each = 8
const all = groups.flatMap((group) => Array.from({ length: each }, (_, index) => `${group}${index}`))

const send = (queue: string) =>
  Effect.flatMap(Producer.make(queue), ({ sendBatch }) =>
    sendBatch(all.map((id) => ({ id, body: id, headers: { "message-group-id": id.slice(0, 1) } })))
  )

const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(1000) })

/** Every third message fails once, every fifth for good. */
const fails = (id: string, attempts: number): boolean => {
  const number = Number(id.slice(1))
  return (number % 3 === 0 && attempts < 2) || number % 5 === 4
}

/** Fails as planned, and for a message whose group is at work already. */
const handler = (runs: Array<Run>) => {
  const atWork = new Set<string>()
  return ({ attempts, id }: { readonly id: string; readonly attempts: number }) => {
    const group = id.slice(0, 1)
    runs.push({ id, attempts, at: Date.now() })
    if (atWork.has(group)) return Effect.fail(new Error(`${id} did not wait`))
    atWork.add(group)
    const work = Effect.andThen(Effect.sleep(5), fails(id, attempts) ? Effect.fail(new Error("no")) : Effect.void)
    return Effect.ensuring(
      work,
      Effect.sync(() => atWork.delete(group))
    )
  }
}

const expected = (group: string) =>
  Array.from({ length: each }, (_, index) => `${group}${index}`).flatMap((id) => {
    const runs: Array<readonly [string, number]> = []
    for (let attempts = 1; attempts <= 3; attempts++) {
      runs.push([id, attempts])
      if (!fails(id, attempts)) break
    }
    return runs
  })

describe(`on ${name}`, () => {
  test("groups are done in order, each retry before what is behind it, and every attempt is counted once", async () => {
    const queue = `${queueName("ordered")}.fifo`
    const runs: Array<Run> = []
    await on({ url }, () =>
      Effect.gen(function* () {
        yield* send(queue)
        // Two of them, as two processes would be: neither knows what the other received.
        yield* Consumer.start(queue, { concurrency: 5, retry }, handler(runs))
        yield* Consumer.start(queue, { concurrency: 5, retry }, handler(runs))
        const total = groups.flatMap(expected).length
        yield* until(
          () => `${total} runs, there were ${runs.length}`,
          () => runs.length >= total
        )
        yield* untilEmpty(behind, queue)
      })
    )
    for (const group of groups) {
      const mine = runs.filter(({ id }) => id.startsWith(group)).map(({ attempts, id }) => [id, attempts] as const)
      assert.deepStrictEqual(mine, expected(group))
    }
  })

  test("dead letters are in a FIFO queue, and can be sent back at once though SQS knows their ids", async () => {
    const queue = `${queueName("letters")}.fifo`
    const [runs, again]: [Array<Run>, Array<Run>] = [[], []]
    await on({ url }, () =>
      Effect.gen(function* () {
        yield* send(queue)
        const first = yield* Consumer.start(
          queue,
          { concurrency: 5, retry: RetryPolicy.make({ maxRetries: 0 }) },
          handler(runs)
        )
        yield* until("all of them", () => runs.length >= all.length)
        yield* untilEmpty(behind, queue)
        yield* first.drain()
        const letters = yield* DeadLetters.make(`${queue}.dlq`)
        const { redriven } = yield* letters.redrive()
        assert.strictEqual(redriven, all.filter((id) => fails(id, 1)).length)
        yield* Consumer.start(queue, { concurrency: 5 }, (message) => {
          again.push({ id: message.id, attempts: message.attempts, at: Date.now() })
        })
        yield* until("what was sent back", () => again.length >= redriven)
        yield* untilEmpty(behind, `${queue}.dlq`)
        yield* untilEmpty(behind, queue)
      })
    )
    assert.deepStrictEqual(
      again.map(({ id }) => id).toSorted(),
      all.filter((id) => fails(id, 1))
    )
  })

  test("with resend, a retry goes behind its group, and the others of its receive go on", async () => {
    const queue = `${queueName("resend")}.fifo`
    const runs: Array<Run> = []
    await on({ url, fifoRetry: "resend" }, () =>
      Effect.gen(function* () {
        yield* send(queue)
        const policy = RetryPolicy.make({ maxRetries: 2 })
        yield* Consumer.start(queue, { concurrency: 5, retry: policy }, handler(runs))
        yield* until("all of them", () => runs.length >= groups.flatMap(expected).length)
        yield* untilEmpty(behind, queue)
      })
    )
    for (const group of groups) {
      const mine = runs.filter(({ id }) => id.startsWith(group))
      const firsts = mine.filter(({ attempts }) => attempts === 1).map(({ id }) => id)
      assert.deepStrictEqual(
        firsts,
        all.filter((id) => id.startsWith(group))
      )
      const named = (run: readonly [string, number]) => run.join(" ")
      assert.sameMembers(
        mine.map(({ attempts, id }) => named([id, attempts])),
        expected(group).map(named)
      )
      const places = mine.map(({ id }) => id)
      assert.isAbove(places.lastIndexOf(`${group}0`), places.indexOf(`${group}${each - 1}`))
    }
  })

  test("a consumer that backs off holds no group up for others, and none of it counts", async () => {
    const queue = `${queueName("paused")}.fifo`
    const runs: Array<Run> = []
    await on({ url }, () =>
      Effect.gen(function* () {
        yield* send(queue)
        const consumerBackoff = ConsumerBackoff.nsq({ multiplier: 20_000 })
        let pauses = 0
        const onEvent = ({ _tag }: Event.Event) => (pauses += _tag === "BackoffEntered" ? 1 : 0)
        yield* Consumer.start(queue, { consumerBackoff, retry, onEvent }, () => Effect.fail(new Error("down")))
        yield* until("a pause", () => pauses > 0)
        yield* Consumer.start(queue, { concurrency: 5, retry }, (message) => {
          runs.push({ id: message.id, attempts: message.attempts, at: Date.now() })
        })
        yield* until("all of them", () => runs.length >= all.length)
        yield* untilEmpty(behind, queue)
      })
    )
    assert.isTrue(runs.every(({ attempts }) => attempts <= 2))
  })

  test("with resend, batches have several messages of a group, in order, and a retry holds up none of them", async () => {
    const queue = `${queueName("batch")}.fifo`
    const batches: Array<ReadonlyArray<string>> = []
    await on({ url, fifoRetry: "resend" }, () =>
      Effect.gen(function* () {
        yield* send(queue)
        const batch = BatchPolicy.make({ maxBatchSize: 5, maxBatchTimeout: 200 })
        yield* Consumer.startBatch(queue, { batch }, ({ messages }) => {
          batches.push(messages.map(({ id }) => id))
          for (const message of messages) if (message.id === "a1" && message.attempts === 1) message.retry()
        })
        yield* until("all of them", () => batches.flat().length > all.length)
        yield* untilEmpty(behind, queue)
      })
    )
    assert.isTrue(batches.some((ids) => new Set(ids.map((id) => id.slice(0, 1))).size < ids.length))
    for (const group of groups) {
      const mine = batches.flat().filter((id) => id.startsWith(group))
      const again = group === "a" ? ["a1"] : []
      assert.deepStrictEqual(mine, [...all.filter((id) => id.startsWith(group)), ...again])
    }
  })

  test("a delayed send is refused, and nothing is sent", async () => {
    const queue = `${queueName("delayed")}.fifo`
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(broker.publish([outgoing(queue, "a"), outgoing(queue, "b", { delay: 1000 })]))
        assert.deepInclude(error, { reason: "Unsupported", queue })
        yield* untilEmpty(behind, queue)
      })
    )
  })
})
