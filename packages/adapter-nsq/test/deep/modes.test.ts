/** What the options change, on real servers. */
import { Producer, RetryPolicy } from "@requeue/core"
import { Backlog } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import * as Wire from "../../src/internal/wire.ts"
import { channels, drain, held } from "../real/raw.ts"
import { server } from "./server.ts"
import { consume, no, on, outgoing, publishAll, queueName, until, type Run, now } from "../world.ts"

const one = await server()
const short = await server({ flags: { "max-req-timeout": "500ms" } })

const once = RetryPolicy.make({ maxRetries: 0 })

/** What another client finds in a topic, and takes out. */
const found = async (topic: string): Promise<ReadonlyArray<Buffer>> => {
  const all = (await channels(one.http, topic)).filter((channel) => channel.topic === topic)
  return (await Promise.all(all.map(drain))).flat().map((body) => Buffer.from(body, "latin1"))
}

describe('envelope: "never"', () => {
  const options = { ...one.direct, envelope: "never" } as const

  test("leaves the body bare for others, and keeps the story of a dead letter", async () => {
    const queue = queueName("bare")
    await on(options, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, ["m"])
        assert.deepStrictEqual((yield* Effect.promise(() => found(queue))).map(String), ['"m"'])
        const runs: Array<Run> = []
        const consumer = yield* consume(queue, runs, { retry: once }, no)
        yield* publishAll(broker, queue, ["n"])
        yield* until("a run", () => runs.length === 1)
        yield* consumer.drain()
        const [letter] = yield* Effect.promise(() => found(`${queue}.requeue.dlq`))
        const { body, metadata } = Wire.decode(letter!)!
        assert.strictEqual(Buffer.from(body).toString(), '"n"')
        assert.deepInclude(metadata.deadLetter, { queue, attempts: 1, reason: "retries-exhausted" })
      })
    )
  })

  test("sends no further than the cap, and says so before anything is sent", async () => {
    const queue = queueName("bare")
    await on({ ...options, ...short.direct }, (broker) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(broker.capabilities.sendDelay, { native: 500, beyond: undefined })
        const producer = yield* Producer.make(queue)
        const error = yield* Effect.flip(producer.send("m", { delay: 501 }))
        assert.strictEqual(error._tag, "InvalidDelay")
        assert.strictEqual(yield* Effect.promise(() => held(short.http, queue)), 0)
      })
    )
  })
})

test("without nsqd's HTTP interface everything but the numbers works", async () => {
  const queue = queueName("tcp")
  const runs: Array<Run> = []
  await on({ nsqd: one.direct.nsqd!, http: false }, (broker) =>
    Effect.gen(function* () {
      const consumer = yield* consume(queue, runs, { retry: once }, no)
      yield* publishAll(broker, queue, ["m"])
      yield* until("a run", () => runs.length === 1)
      yield* consumer.drain()
      assert.deepStrictEqual(yield* broker.admin.counts(queue), {
        ready: undefined,
        inFlight: undefined,
        delayed: undefined
      })
      const { remarks, ...told } = yield* Backlog.of(broker, { queue, retry: once })
      assert.deepStrictEqual([told.ready, told.delayed, told.consumers, told.oldest], Array(4).fill(undefined))
      assert.match(remarks.ready ?? "", /http: false/)
      assert.strictEqual((yield* Effect.flip(broker.admin.purge(queue))).reason, "Unsupported")
      // A topic without a channel keeps what it has for the first one.
      yield* consume(`${queue}.dlq`, runs)
      yield* until("the dead letter", () => runs.length === 2)
    })
  )
})

test("create: false makes nothing that only others use", async () => {
  const queue = queueName("others")
  await on({ ...one.direct, create: false }, (broker) => publishAll(broker, queue, ["m"]))
  assert.deepStrictEqual(await channels(one.http, queue), [])
})

test('retry: "exact" keeps the history, and shows it in the dead letter', async () => {
  const queue = queueName("exact")
  const runs: Array<Run> = []
  await on({ ...one.direct, retry: "exact" }, (broker) =>
    Effect.gen(function* () {
      assert.isTrue(broker.capabilities.historyOnRetry)
      const consumer = yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 2 }) }, no)
      yield* publishAll(broker, queue, ["m"])
      yield* until("the runs", () => runs.length === 3)
      yield* consumer.drain()
      const [letter] = yield* Effect.promise(() => found(`${queue}.requeue.dlq`))
      const { history } = Wire.decode(letter!)!.metadata
      assert.deepStrictEqual(
        history.map(({ attempt }) => attempt),
        [1, 2]
      )
    })
  )
})

test("nsqd with different caps: the smallest counts, and no delay ends a connection", async () => {
  const queue = queueName("caps")
  const runs: Array<Run> = []
  const nsqd = [...one.direct.nsqd!, ...short.direct.nsqd!]
  await on({ nsqd }, (broker) =>
    Effect.gen(function* () {
      yield* consume(queue, runs, { concurrency: 5 })
      // The cap of the second is known as soon as it has been connected to.
      const sent = now()
      yield* broker.publish([outgoing(queue, "m", { delay: 1200 })])
      yield* until("the message", () => runs.length === 1)
      assert.isAtLeast(runs[0]!.at - sent, 1200)
    })
  )
})

test("a foreign message of the largest size is retried, and kept as a dead letter", async () => {
  const queue = queueName("large")
  const runs: Array<Run> = []
  const size = 1024 * 1024
  await on(one.direct, () =>
    Effect.gen(function* () {
      const consumer = yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 1 }) }, no)
      const body = `"${"x".repeat(size - 2)}"`
      yield* Effect.promise(() => fetch(`http://${one.http[0]}/pub?topic=${queue}`, { method: "POST", body }))
      yield* until("both runs", () => runs.length === 2)
      yield* consumer.drain()
      const [letter] = yield* Effect.promise(() => found(`${queue}.requeue.dlq`))
      assert.strictEqual(letter!.length, size)
    })
  )
})

test("without HTTP, retries beyond --max-req-timeout cost one attempt each, and none comes early", async () => {
  const queue = queueName("unknown-limit")
  const retryDelay = 1200
  const runs: Array<Run> = []
  await on({ nsqd: short.direct.nsqd!, http: false }, (broker) =>
    Effect.gen(function* () {
      yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 5 }), retryDelay }, no)
      yield* broker.publish([outgoing(queue, "a")])
      yield* until("the last run", () => runs.length === 6)
    })
  )
  assert.deepStrictEqual(
    runs.map(({ attempts }) => attempts),
    [1, 2, 3, 4, 5, 6]
  )
  // Hops end at a whole millisecond of the wall clock, and these times have fractions.
  for (const [index, { at }] of runs.slice(1).entries()) assert.isAbove(at - runs[index]!.at, retryDelay - 1)
})
