/** Connections that are lost, and subscriptions that nsqd has forgotten. */
import { Wait } from "@requeue/conformance"
import { RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import type { Nsqd } from "../../src/servers/nsq/index.ts"
import { consume, no, type OwnCase, recorded, type Run, send } from "./Bench.ts"

const queue = "orders"

const inFlight = (nsqd: Nsqd.Nsqd): number => nsqd.topic(queue).channel("requeue").statistics().inFlight

const credit: OwnCase = {
  name: "after a lost connection a consumer has all its credit again, less what its handlers still have",
  settings: { options: { messageTimeout: 600_000 } },
  program: ({ network, nsqd: [first], on }) =>
    on((broker) =>
      Effect.gen(function* () {
        const runs: Array<Run> = []
        const gate = yield* Deferred.make<void>()
        yield* consume(queue, runs, { concurrency: 2, prefetch: 4 }, () => Deferred.await(gate))
        yield* Effect.forEach(
          Array.from({ length: 40 }, (_, index) => `m${index}`),
          (id) => send(broker, queue, id)
        )
        yield* Wait.until("a full window", () => inFlight(first!) === 6, 10_000)
        network.cut()
        // The six of the lost connection stay in flight until their leases end, in ten minutes.
        yield* Wait.until("its credit on the new one", () => inFlight(first!) === 6 + 4, 10_000)
        yield* Effect.sleep(1000)
        assert.deepStrictEqual([runs.length, inFlight(first!)], [2, 6 + 4])
        yield* Deferred.succeed(gate, undefined)
        yield* Wait.until("the others", () => runs.length === 36, 10_000)
      })
    )
}

/** How many connections consume a topic, as nsqd sees it; one that it has forgotten does not count. */
const clients = (nsqd: Nsqd.Nsqd, topic: string): number =>
  nsqd.existing(topic)?.existing("requeue")?.statistics().clients.length ?? 0

const forgotten: ReadonlyArray<OwnCase> = [
  {
    name: "a subscription that nsqd has forgotten with its topic is made again",
    program: ({ nsqd: [first], on }) =>
      on((broker) =>
        Effect.gen(function* () {
          const runs: Array<Run> = []
          yield* consume(queue, runs)
          // nsqd is asked after a second whether it lists the session.
          yield* Effect.sleep(1500)
          // The adapter subscribes again while nsqd still deletes the topic.
          first!.removeTopic(queue, 1000)
          yield* Effect.sleep(1100)
          assert.strictEqual(clients(first!, queue), 0)
          yield* send(broker, queue, "m")
          yield* Wait.until("its run", () => runs.length === 1)
        })
      )
  },
  {
    name: "a subscription that nsqd has never listed stays: its HTTP interface may be that of another",
    settings: { nodes: 2 },
    program: ({ network, nsqd: [first, other], on }) =>
      Effect.gen(function* () {
        network.add(first!, "first:4150", "http://unused:4151")
        network.add(other!, "unused:4150", "http://first:4151")
        const sent = recorded(network)
        yield* on(() => Effect.andThen(consume(queue, []), Effect.sleep(3000)), { nsqd: ["first:4150"] })
        assert.strictEqual(sent("SUB").filter(({ command }) => command.args[0] === queue).length, 1)
      })
  },
  {
    name: "topics that are deleted again and again come back with their consumers",
    program: ({ nsqd: [first], on }) => {
      const topics = Array.from({ length: 6 }, (_, index) => `topic-${index}`)
      const runs: Array<Run> = []
      return on((broker) =>
        Effect.gen(function* () {
          for (const topic of topics) yield* consume(topic, runs)
          for (let times = 0; times < 3; times++) {
            yield* Effect.sleep(1200)
            for (const [index, topic] of topics.entries()) first!.removeTopic(topic, 40 * index)
          }
          yield* Effect.sleep(2500)
          for (const topic of topics) yield* send(broker, topic, topic)
          yield* Wait.until("all of them", () => runs.length === topics.length)
        })
      )
    }
  }
]

/** nsqd stores nothing any more, and the process ends. */
const unstored: OwnCase = {
  name: "a message whose dead letter was not stored when its process ended is still in its channel",
  program: ({ network, nsqd: [first], on }) =>
    Effect.gen(function* () {
      const sent = recorded(network)
      yield* on((broker) =>
        Effect.gen(function* () {
          yield* send(broker, queue, "m")
          const fullDisk = Effect.sync(() => first!.setTrouble("no space left on device"))
          const retry = RetryPolicy.make({ maxRetries: 0 })
          yield* consume(queue, [], { retry, drainTimeout: 0 }, () => Effect.andThen(fullDisk, no()))
          const letters = () => sent("PUB").filter(({ command }) => command.args[0]?.endsWith(".dlq"))
          yield* Wait.until("a refused letter", () => letters().length > 0, 10_000)
          yield* Effect.sleep(100)
        })
      )
      const { deferred, depth, inFlight } = first!.topic(queue).channel("requeue").statistics()
      assert.strictEqual(depth + inFlight + deferred, 1)
    })
}

const together = ((): OwnCase => {
  let open = 0
  let most = 0
  return {
    name: "consumers that start at the same time subscribe in turn, so the last one is answered in time, too",
    settings: {
      driver: (driver) => ({
        ...driver,
        subscribe: async (...request) => {
          most = Math.max(most, ++open)
          try {
            return await driver.subscribe(...request)
          } finally {
            open--
          }
        }
      })
    },
    program: ({ nsqd: [first], on }) =>
      on(() =>
        Effect.gen(function* () {
          const queues = Array.from({ length: 100 }, (_, n) => `orders-${n}`)
          yield* Effect.forEach(queues, (each) => consume(each, []), { concurrency: "unbounded" })
          assert.strictEqual(queues.filter((each) => clients(first!, each) === 1).length, 100)
          assert.isAtMost(most, 64)
        })
      )
  }
})()

export const cases: ReadonlyArray<OwnCase> = [credit, unstored, together, ...forgotten]
