/** What the options change. */
import { Wait } from "@requeue/conformance"
import { Producer, RetryPolicy } from "@requeue/core"
import { Backlog } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import { type Bench, consume, elapsed, no, type OwnCase, type Run, send } from "./Bench.ts"
import { read } from "./queues.ts"

const queue = "orders"
const once = RetryPolicy.make({ maxRetries: 0 })
const short = { maxReqTimeout: 500 }

/** The bodies of a topic, as another program finds them. */
const bodies = ({ nsqd: [first] }: Bench, topic: string): ReadonlyArray<Buffer> => {
  const found = first!.existing(topic)
  return [...(found?.waiting() ?? []), ...(found?.channels() ?? []).flatMap((each) => each.waiting())].map(
    ({ body }) => body
  )
}

const letterIn = (bench: Bench) => read(bodies(bench, `${queue}.requeue.dlq`)[0]!, { id: "", stored: 0 })

export const cases: ReadonlyArray<OwnCase> = [
  {
    name: 'envelope: "never" leaves the body bare for others, and keeps the history of a dead letter',
    settings: { options: { envelope: "never" } },
    program: (bench) =>
      bench.on((broker) =>
        Effect.gen(function* () {
          yield* send(broker, queue, "m")
          assert.deepStrictEqual(bodies(bench, queue).map(String), ['"m"'])
          const runs: Array<Run> = []
          const consumer = yield* consume(queue, runs, { retry: once }, no)
          yield* Wait.until("a run", () => runs.length === 1)
          yield* consumer.drain()
          const { body, metadata } = letterIn(bench)
          assert.strictEqual(Buffer.from(body).toString(), '"m"')
          assert.deepInclude(metadata.deadLetter, { queue, attempts: 1, reason: "retries-exhausted" })
        })
      )
  },
  {
    name: 'envelope: "never" sends no further than the longest delay of nsqd, and says so before anything is sent',
    settings: { options: { envelope: "never" }, flags: short },
    program: (bench) =>
      bench.on((broker) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(broker.capabilities.sendDelay, { native: 500, beyond: undefined })
          const producer = yield* Producer.make(queue)
          const error = yield* Effect.flip(producer.send("m", { delay: 501 }))
          assert.strictEqual(error._tag, "InvalidDelay")
          assert.deepStrictEqual(bodies(bench, queue), [])
        })
      )
  },
  {
    name: "without nsqd's HTTP interface everything but the numbers works",
    settings: { options: { http: false } },
    program: ({ on }) =>
      on((broker) =>
        Effect.gen(function* () {
          const runs: Array<Run> = []
          const consumer = yield* consume(queue, runs, { retry: once }, no)
          yield* send(broker, queue, "m")
          yield* Wait.until("a run", () => runs.length === 1)
          yield* consumer.drain()
          const none = { ready: undefined, inFlight: undefined, delayed: undefined }
          assert.deepStrictEqual(yield* broker.admin.counts(queue), none)
          const { remarks, ...told } = yield* Backlog.of(broker, { queue, retry: once })
          assert.deepStrictEqual([told.ready, told.delayed, told.consumers, told.oldest], Array(4).fill(undefined))
          assert.match(remarks.ready ?? "", /http: false/)
          assert.strictEqual((yield* Effect.flip(broker.admin.purge(queue))).reason, "Unsupported")
          // A topic without a channel keeps its messages for the first one.
          yield* consume(`${queue}.dlq`, runs)
          yield* Wait.until("the dead letter", () => runs.length === 2)
        })
      )
  },
  {
    name: "create: false creates nothing that only others use",
    settings: { options: { create: false } },
    program: ({ nsqd: [first], on }) =>
      Effect.gen(function* () {
        yield* on((broker) => send(broker, queue, "m"))
        assert.deepStrictEqual(first!.topic(queue).channels(), [])
      })
  },
  {
    name: 'retry: "exact" keeps the history, and shows it in the dead letter',
    settings: { options: { retry: "exact" } },
    program: (bench) =>
      bench.on((broker) =>
        Effect.gen(function* () {
          assert.isTrue(broker.capabilities.historyOnRetry)
          const runs: Array<Run> = []
          const consumer = yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 2 }) }, no)
          yield* send(broker, queue, "m")
          yield* Wait.until("the runs", () => runs.length === 3)
          yield* consumer.drain()
          const { history } = letterIn(bench).metadata
          assert.deepStrictEqual(
            history.map(({ attempt }) => attempt),
            [1, 2]
          )
        })
      )
  },
  {
    name: "a delay beyond the longest of nsqd is kept in hops: the handler runs again not before, as the second attempt",
    settings: { flags: { maxReqTimeout: 2000 } },
    program: ({ nsqd: [first], on, warm }) =>
      Effect.gen(function* () {
        yield* warm(queue)
        const runs: Array<Run> = []
        yield* on((broker) =>
          Effect.gen(function* () {
            const handler = ({ attempts }: { readonly attempts: number }) => (attempts === 1 ? no() : undefined)
            yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 1 }), retryDelay: 5000 }, handler)
            yield* send(broker, queue, "m")
            yield* Wait.until("the second run", () => runs.length === 2)
          })
        )
        assert.deepStrictEqual(
          runs.map(({ attempts }) => attempts),
          [1, 2]
        )
        const late = runs[1]!.at - runs[0]!.at - 5000
        assert.isAtLeast(late, 0)
        // Three hops, each with a scan and a buffer.
        assert.isBelow(late, 3 * 250)
        assert.strictEqual(first!.topic(`${queue}.requeue.retry`).statistics().messages, 3)
      })
  },
  {
    name: "of nsqd with different limits of delays the smallest counts, and no delay ends a connection",
    settings: { nodes: 2, flags: (index) => (index === 0 ? {} : short) },
    program: ({ on, warm }) =>
      Effect.gen(function* () {
        yield* warm(queue)
        const runs: Array<Run> = []
        yield* on((broker) =>
          Effect.gen(function* () {
            assert.strictEqual(broker.capabilities.retryDelay.native, 500)
            yield* consume(queue, runs, { concurrency: 5 })
            const sent = yield* elapsed
            yield* send(broker, queue, "m", { delay: 1200 })
            yield* Wait.until("the message", () => runs.length === 1)
            assert.isAtLeast(runs[0]!.at - sent, 1200)
          })
        )
      })
  },
  {
    name: "a foreign message of the largest size is retried, and kept as a dead letter",
    program: (bench) =>
      bench.on(() =>
        Effect.gen(function* () {
          const size = 1024 * 1024
          const runs: Array<Run> = []
          const consumer = yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 1 }) }, no)
          bench.nsqd[0]!.topic(queue).put(Buffer.from(`"${"x".repeat(size - 2)}"`), 0, undefined)
          yield* Wait.until("both runs", () => runs.length === 2)
          yield* consumer.drain()
          assert.strictEqual(bodies(bench, `${queue}.requeue.dlq`)[0]!.length, size)
        })
      )
  },
  {
    name: "without HTTP, retries beyond the longest delay of nsqd cost one attempt each, and none comes early",
    settings: { options: { http: false }, flags: short },
    program: ({ on, warm }) =>
      Effect.gen(function* () {
        yield* warm(queue)
        const runs: Array<Run> = []
        const retryDelay = 1200
        yield* on((broker) =>
          Effect.gen(function* () {
            yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 5 }), retryDelay }, no)
            yield* send(broker, queue, "a")
            yield* Wait.until("the last run", () => runs.length === 6)
          })
        )
        assert.deepStrictEqual(
          runs.map(({ attempts }) => attempts),
          [1, 2, 3, 4, 5, 6]
        )
        for (const [index, { at }] of runs.slice(1).entries()) assert.isAtLeast(at - runs[index]!.at, retryDelay)
      })
  },
  {
    name: "a delayed send is kept beyond the longest delay, and no other message waits for it",
    settings: { flags: { maxReqTimeout: 2000 } },
    program: ({ on, warm }) =>
      Effect.gen(function* () {
        yield* warm(queue)
        const runs: Array<Run> = []
        const from = yield* elapsed
        yield* on((broker) =>
          Effect.gen(function* () {
            yield* consume(queue, runs, { concurrency: 10 })
            yield* send(broker, queue, "late", { delay: 5000 })
            yield* send(broker, queue, "soon")
            yield* Wait.until("both", () => runs.length === 2)
          })
        )
        assert.deepStrictEqual(
          runs.map(({ attempts, id }) => `${id} ${attempts}`),
          ["soon 1", "late 1"]
        )
        assert.isBelow(runs[0]!.at - from, 100)
        assert.isAtLeast(runs[1]!.at - from, 5000)
      })
  }
]
