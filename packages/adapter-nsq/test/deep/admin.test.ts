/** What operators see and do while an nsqd is away, on real ones: the others answer, and it is named. */
import { Backoff, Broker, RetryPolicy } from "@requeue/core"
import { Backlog } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { afterEach, assert, beforeEach, describe, test } from "vitest"
import { NsqOperator } from "../../src/index.ts"
import { channels, held } from "../real/raw.ts"
import { server } from "./server.ts"
import { consume, ids, no, on, publishAll, queueName, until, type Run } from "../world.ts"

const two = await server({ nodes: 2 })
const [first, second] = two.broker.nodes
const one = { nsqd: [two.direct.nsqd![0]!] }
const other = { nsqd: [two.direct.nsqd![1]!] }
const name = `127.0.0.1:${second!.port}`

/** Dead letters of a queue, all on these nsqd. */
const bury = (queue: string, count: number, options: typeof one) =>
  on(options, (broker) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const consumer = yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 0 }), concurrency: 100 }, no)
      yield* publishAll(broker, queue, ids(count))
      const dead = yield* DeadLetters.make(`${queue}.dlq`)
      const isBuried = async () => (await Effect.runPromise(countOf(dead))) === count
      yield* until("the dead letters", isBuried)
      yield* consumer.drain()
    })
  )

const countOf = ({ count }: DeadLetters.DeadLetters) => Effect.orElseSucceed(count, () => undefined)

/** nsqlookupd forgets an nsqd that has ended at once, and not one that hangs. */
const signal = (name: "SIGSTOP" | "SIGCONT") => async () => void process.kill(second!.pid()!, name)

describe.each([
  ["given, one has ended", two.direct, second!.stop, second!.start],
  ["found by nsqlookupd, one hangs", two.found, signal("SIGSTOP"), signal("SIGCONT")]
] as const)("of two nsqd that are %s", (_, way, stop, start) => {
  const options = { ...way, connectTimeout: 1000, requestTimeout: 1000 }
  let queue = ""
  beforeEach(async () => {
    queue = queueName("half")
    await bury(queue, 5, one)
    await bury(queue, 7, other)
    await stop()
  })
  afterEach(start)

  test("counts, list, group, redrive and purge work on the other, and name the one that is missing", async () => {
    await on(options, (broker) =>
      Effect.gen(function* () {
        const dead = yield* DeadLetters.make(`${queue}.dlq`)
        assert.strictEqual(yield* dead.count, 5)
        const { missing = [] } = yield* broker.admin.counts(`${queue}.dlq`)
        assert.lengthOf(missing, 1)
        assert.include(missing[0]!.message, name)
        assert.deepStrictEqual(
          (yield* dead.missing).map(({ message }) => message),
          missing.map(({ message }) => message)
        )
        assert.lengthOf(yield* dead.list(), 5)
        assert.strictEqual((yield* dead.group())[0]?.count, 5)
        assert.strictEqual((yield* dead.redrive({ limit: 2 })).redriven, 2)
        assert.strictEqual(yield* dead.purge({ all: true }), 3)
        assert.strictEqual(yield* dead.count, 0)
      })
    )
    await start()
    // What is there has been left alone.
    assert.strictEqual(await held([two.http[1]!], `${queue}.requeue.dlq`), 7)
  })
})

test("with all nsqd away it is an error", async () => {
  await on(one, (broker) =>
    Effect.gen(function* () {
      yield* Effect.promise(() => first!.stop())
      const error = yield* Effect.flip(broker.admin.counts("any"))
      yield* Effect.promise(() => first!.start())
      assert.include(error.message, `127.0.0.1:${first!.port}`)
    })
  )
})

test("to count, browse and purge makes no topic where there is none", async () => {
  const queue = queueName("lean")
  await bury(queue, 3, one)
  const before = await channels(two.http, queue)
  await on(two.direct, () =>
    Effect.gen(function* () {
      const dead = yield* DeadLetters.make(`${queue}.dlq`)
      assert.strictEqual(yield* dead.count, 3)
      assert.lengthOf(yield* dead.list(), 3)
      assert.strictEqual(yield* dead.purge({ all: true }), 3)
    })
  )
  const names = (all: typeof before) => all.map((each) => `${each.http} ${each.topic} ${each.name}`).toSorted()
  assert.deepStrictEqual(names(await channels(two.http, queue)), names(before))
})

test("queues that are counted at the same time have each its own numbers, and those that are missing are told", async () => {
  const queues = Array.from({ length: 12 }, (_, index) => ({ queue: queueName("many"), count: index % 4 }))
  await on(two.direct, (broker) =>
    Effect.gen(function* () {
      for (const { count, queue } of queues) if (count > 0) yield* publishAll(broker, queue, ids(count))
      const counted = Effect.forEach(queues, ({ queue }) => broker.admin.counts(queue), { concurrency: "unbounded" })
      const told = (yield* counted).map(({ isMissing, ready }) => [ready, isMissing === true])
      assert.deepStrictEqual(
        told,
        queues.map(({ count }) => [count, count === 0])
      )
    })
  )
})

test("a backlog counts what is deferred in both topics, and each consumer once, on two nsqd", async () => {
  const queue = queueName("backlog")
  const runs: Array<Run> = []
  const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant("1 minute") })
  await on(two.direct, (broker) =>
    Effect.gen(function* () {
      const backlog = Backlog.of(broker, { queue, retry })
      yield* consume(queue, runs, { retry, concurrency: 10 }, no)
      yield* publishAll(broker, queue, ids(4))
      yield* Effect.promise(() => on(other, (second) => publishAll(second, queue, ids(2, "o"))))
      yield* until("all are deferred", async () => (await Effect.runPromise(backlog)).delayed === 6)
      const { backoff, consumers, oldest, ready, remarks, undelivered } = yield* backlog
      assert.deepStrictEqual([ready, backoff, undelivered, oldest, consumers], [0, undefined, 0, 0, 1])
      assert.match(remarks.backoff ?? "", /not when they are due/)
    })
  )
})

describe("a pause", () => {
  test("holds a queue's messages back on every nsqd, shows in its counts, and ends", async () => {
    const queue = queueName("paused")
    const runs: Array<Run> = []
    await on(two.direct, (broker) =>
      Effect.gen(function* () {
        const { admin } = yield* Broker.Broker
        yield* consume(queue, runs)
        assert.isUndefined((yield* admin.counts(queue)).isPaused)
        assert.deepStrictEqual(yield* NsqOperator.pause(queue, two.direct), [])
        assert.strictEqual((yield* admin.counts(queue)).isPaused, true)
        yield* publishAll(broker, queue, ids(3))
        yield* Effect.promise(() => on(other, (second) => publishAll(second, queue, ids(3, "o"))))
        yield* until("messages in their channels", async () => (await held(two.http, queue)) === 6)
        assert.lengthOf(runs, 0)
        assert.deepStrictEqual(yield* NsqOperator.resume(queue, two.direct), [])
        yield* until("all runs", () => runs.length === 6)
        assert.isUndefined((yield* admin.counts(queue)).isPaused)
      })
    )
  })

  test("of a queue that no nsqd has is an error", async () => {
    const error = await Effect.runPromise(Effect.flip(NsqOperator.pause(queueName("none"), two.direct)))
    assert.deepInclude(error, { reason: "QueueMissing", operation: "pause" })
    assert.match(String(error), /requeue create/)
  })
})
