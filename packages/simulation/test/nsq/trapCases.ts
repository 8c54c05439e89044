/** What clients of NSQ get wrong, each once: with the adapter none of it happens. */
import { Wait } from "@requeue/conformance"
import { Backoff, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import type { Nsqd } from "../../src/servers/nsq/index.ts"
import { consume, elapsed, no, type OwnCase, recorded, type Run, send } from "./Bench.ts"

const queue = "orders"
const ids = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`)

/** The messages that an nsqd has in all channels of a topic. */
const held = (nsqd: Nsqd.Nsqd, topic: string) => {
  const counts = (nsqd.existing(topic)?.channels() ?? []).map((each) => each.statistics())
  const sum = (of: "depth" | "inFlight" | "deferred") => counts.reduce((total, each) => total + each[of], 0)
  return { ready: sum("depth"), inFlight: sum("inFlight"), deferred: sum("deferred") }
}

const fractions: OwnCase = {
  name: "delays that are fractions are written as whole milliseconds, and close no connection",
  program: ({ network, on, warm }) =>
    Effect.gen(function* () {
      yield* warm(queue)
      const sent = recorded(network)
      const delays = [0.1, 0.5, 1 / 3, 1.5, 99.999_999, 150.25, 1e-9]
      const runs: Array<Run> = []
      yield* on((broker) =>
        Effect.gen(function* () {
          yield* consume(queue, runs, { concurrency: 10 }, (message) => {
            if (message.attempts === 1) message.retry({ delay: delays[Number(message.id.slice(1))]! })
          })
          const opened = sent("IDENTIFY").length
          yield* Effect.forEach(delays, (delay, index) => send(broker, queue, `m${index}`, { delay }))
          yield* Wait.until("two runs of each", () => runs.length === 2 * delays.length)
          assert.lengthOf(sent("IDENTIFY"), opened, "a connection was made again")
        })
      )
      for (const { command } of sent("REQ", "DPUB")) assert.match(command.args[1] ?? "", /^\d+$/)
    })
}

const sameIds: OwnCase = {
  name: "a copy that has the id of a message in another topic runs all the same",
  settings: { options: { retry: "exact" } },
  program: ({ network, on }) =>
    Effect.gen(function* () {
      const names = ids(150)
      const runs: Array<Run> = []
      const retry = RetryPolicy.make({ maxRetries: 1 })
      const sent = recorded(network)
      yield* on((broker) =>
        Effect.gen(function* () {
          yield* consume(queue, runs, { retry, concurrency: 5 }, ({ attempts }) => (attempts === 1 ? no() : undefined))
          // One each millisecond: copies of earlier ones are stored in the same millisecond as later ones.
          for (const id of names) yield* Effect.andThen(Effect.forkScoped(send(broker, queue, id)), Effect.sleep(1))
          yield* Wait.until(
            () => `two runs of each, ${runs.length} came`,
            () => runs.length === 300
          )
          yield* Wait.until("all settlements", () => sent("FIN").length === 300)
        })
      )
      const finished = Map.groupBy(sent("FIN"), ({ consumes }) => consumes)
      const [of = [], others = []] = [...finished.values()].map((all) => all.map(({ command }) => command.args[0]))
      assert.isAbove(of.filter((id) => others.includes(id)).length, 10, "ids that both topics have")
      assert.deepStrictEqual(
        runs.map(({ attempts, id }) => `${id} ${attempts}`).toSorted(),
        names.flatMap((id) => [`${id} 1`, `${id} 2`]).toSorted()
      )
    })
}

const delay = 4000

const restarted: ReadonlyArray<OwnCase> = [
  {
    name: "a delayed send comes no earlier, and as the first attempt, although nsqd restarts in order meanwhile",
    program: ({ nsqd: [first], on, warm }) =>
      Effect.gen(function* () {
        yield* warm(queue)
        const runs: Array<Run> = []
        yield* on((broker) =>
          Effect.gen(function* () {
            yield* consume(queue, runs)
            const sent = yield* elapsed
            yield* send(broker, queue, "m", { delay })
            first!.restart("orderly", 300)
            yield* Wait.until("a run", () => runs.length === 1)
            assert.isAtLeast(runs[0]!.at - sent, delay)
            assert.strictEqual(runs[0]!.attempts, 1)
          })
        )
      })
  },
  ...(["exact", "native"] as const).map(
    (how): OwnCase => ({
      name: `a retry that is ${how} comes no earlier, and is counted once, although nsqd restarts in order meanwhile`,
      settings: { options: { retry: how } },
      program: ({ nsqd: [first], on, warm }) =>
        Effect.gen(function* () {
          yield* warm(queue)
          const runs: Array<Run> = []
          const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(delay) })
          const topics = [queue, `${queue}.requeue.retry`]
          yield* on((broker) =>
            Effect.gen(function* () {
              yield* consume(queue, runs, { retry }, ({ attempts }) => (attempts === 1 ? no() : undefined))
              yield* send(broker, queue, "m")
              yield* Wait.until("a deferred retry", () => topics.some((topic) => held(first!, topic).deferred === 1))
              first!.restart("orderly", 300)
              yield* Wait.until("the second run", () => runs.length === 2)
              yield* Effect.sleep(3000)
            })
          )
          assert.deepStrictEqual(
            runs.map(({ attempts }) => attempts),
            [1, 2]
          )
          assert.isAtLeast(runs[1]!.at - runs[0]!.at, delay)
          for (const topic of topics) {
            assert.deepStrictEqual(held(first!, topic), { ready: 0, inFlight: 0, deferred: 0 })
          }
        })
    })
  )
]

const fanOut = (how: "native" | "exact"): OwnCase => ({
  name: `a retry that is ${how} in one channel is not seen by another`,
  settings: { options: { retry: how } },
  program: ({ nsqd: [first], on }) => {
    const [left, right]: [Array<Run>, Array<Run>] = [[], []]
    const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(100) })
    return Effect.gen(function* () {
      yield* on(
        (broker) =>
          Effect.gen(function* () {
            yield* consume(queue, left, { retry }, no)
            yield* on(
              () =>
                Effect.gen(function* () {
                  yield* consume(queue, right)
                  yield* send(broker, queue, "m")
                  yield* Wait.until("three runs", () => left.length === 3)
                  yield* Wait.until("a dead letter", () => held(first!, `${queue}.left.dlq`).ready === 1)
                }),
              { channel: "right" }
            )
          }),
        { channel: "left" }
      )
      assert.deepStrictEqual(
        [left, right].map((runs) => runs.map(({ attempts }) => attempts)),
        [[1, 2, 3], [1]]
      )
    })
  }
})

const flushed: OwnCase = {
  name: "a consumer that ends right after its handlers has written their FIN: nothing is in flight or comes again",
  program: ({ nsqd: [first], on }) =>
    Effect.gen(function* () {
      const all = ids(200)
      const runs: Array<Run> = []
      yield* on((broker) => Effect.forEach(all, (id) => send(broker, queue, id), { concurrency: "unbounded" }))
      while (runs.length < all.length) {
        const begun = runs.length
        yield* on(() =>
          Effect.andThen(
            consume(queue, runs, { concurrency: 10 }),
            Wait.until("some runs", () => runs.length >= Math.min(begun + 20, all.length))
          )
        )
        assert.strictEqual(held(first!, queue).inFlight, 0)
      }
      assert.deepStrictEqual(new Set(runs.map(({ id }) => id)).size, runs.length)
      assert.deepStrictEqual(held(first!, queue), { ready: 0, inFlight: 0, deferred: 0 })
    })
}

export const cases: ReadonlyArray<OwnCase> = [
  fractions,
  sameIds,
  ...restarted,
  fanOut("native"),
  fanOut("exact"),
  flushed
]
