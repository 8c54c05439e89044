/** Limits of a connection that the server sets: frame_max and channel_max. They belong to one message, and to one consumer. */
import { Backoff, type Broker, Consumer, type Event, RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { assert, test } from "vitest"
import { server } from "../real/server.ts"
import { consume, raw, type Run } from "./traps/trap.ts"
import { ids, on, outgoing, publishAll, queueName, reasonOf, until } from "../world.ts"

const one = await server()
const [node] = one.broker.nodes

/** Sets a limit for connections that are made from now on. */
const limit = async (name: string, value: number): Promise<void> => {
  await node!.ctl("eval", `application:set_env(rabbit, ${name}, ${value}).`)
}

/** Runs a program on connections with a limit, which has `before` as its value otherwise. */
const limited = async (name: string, [value, before]: readonly [number, number], program: Parameters<typeof on>[1]) => {
  await limit(name, value)
  try {
    await on({ url: one.url }, program)
  } finally {
    await limit(name, before)
  }
}

test.runIf(node !== undefined)(
  "headers that need a larger frame disturb no other message",
  { timeout: 180_000 },
  async () => {
    const queue = queueName("frames")
    const events: Array<Event.Event> = []
    const runs: Array<Run> = []
    await limited("frame_max", [8192, 131_072], (broker) =>
      Effect.gen(function* () {
        const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(200) })
        yield* consume(queue, runs, { retry, onEvent: (event) => events.push(event) }, ({ headers, id }) =>
          headers["large"] === undefined && id !== "failing" ? undefined : Effect.fail(new Error("no".repeat(1000)))
        )
        // What another program may send: a dead letter of it fits without the words of its error.
        yield* Effect.promise(() =>
          raw(one.url, async (channel) => {
            for (let at = 0; at < 5; at++)
              channel.sendToQueue(queue, Buffer.from('"x"'), {
                messageId: `large${at}`,
                headers: { large: "h".repeat(7350) }
              })
          })
        )
        yield* publishAll(broker, queue, [...ids(50), "failing"])
        const tooLarge = outgoing(queue, "refused", { headers: { large: "h".repeat(8192) } })
        const sent = yield* Effect.result(broker.publish([tooLarge]))
        assert.strictEqual(Result.isFailure(sent) && reasonOf(sent.failure), "BodyTooLarge")
        const ended = (tag: Event.Event["_tag"]) => events.filter(({ _tag }) => _tag === tag).length
        yield* until("all that is good", () => ended("Succeeded") === 50)
        yield* until("the dead letters, the large ones with smaller headers", () => ended("DeadLettered") === 6)
        assert.deepStrictEqual(broker.connection().state, "up")
      })
    )
  }
)

test.runIf(node !== undefined)(
  "consumers leave a channel for declarations, and sends share what there is",
  { timeout: 180_000 },
  async () => {
    await limited("channel_max", [4, 2047], (broker) =>
      Effect.gen(function* () {
        let started = 0
        let refused: unknown
        while (refused === undefined && started < 10) {
          const opened = yield* Effect.result(Consumer.start(queueName("many"), {}, () => {}))
          if (Result.isFailure(opened)) refused = opened.failure
          else started++
        }
        assert.strictEqual(started, 3)
        assert.strictEqual(reasonOf(refused), "AccessRefused")
        assert.match(String(refused), /allows 4 channels \(channel_max\), .* Raise channel_max/s)
        // Each goes to another exchange, with a queue to declare at the same time as the others.
        const send = (digit: number) =>
          broker.publish([outgoing(queueName("declared"), "a", { delay: 50 * 2 ** digit })])
        yield* Effect.forEach(Array.from({ length: 8 }).keys(), send, { concurrency: "unbounded" })
      })
    )
  }
)

/** Runs a program as a user who may have so many channels or connections. */
const asNarrow = async (limits: Readonly<Record<string, number>>, program: Parameters<typeof on>[1], options = {}) => {
  const user = queueName("narrow")
  await node!.ctl("add_user", user, "secret")
  await node!.ctl("set_permissions", user, ".*", ".*", ".*")
  await node!.ctl("set_user_limits", user, JSON.stringify(limits))
  await on({ url: one.url, username: user, password: "secret", reconnectFirst: 20, ...options }, program)
}

/** Consumes a queue with a handler that waits for a gate, and tells how a settlement has ended. */
const holding = (broker: Broker.Service) =>
  Effect.gen(function* () {
    const queue = queueName("holding")
    const runs: Array<Run> = []
    const events: Array<Event.Event> = []
    const gate = yield* Deferred.make<void>()
    yield* consume(queue, runs, { onEvent: (event) => events.push(event) }, () => Deferred.await(gate))
    yield* publishAll(broker, queue, ["held"])
    yield* until("the run", () => runs.length === 1)
    return {
      queue,
      /** Nothing has happened to the connection that delivers: the held message is settled, in its first run. */
      settled: Effect.gen(function* () {
        yield* Deferred.succeed(gate, undefined)
        yield* until("the end", () => events.some(({ _tag }) => _tag === "Succeeded"))
        assert.strictEqual(runs.length, 1)
        assert.deepStrictEqual(
          events.filter(({ _tag }) => _tag === "SettleFailed"),
          []
        )
      })
    }
  })

test.runIf(node !== undefined)("counts need no more channels than their user may have", { timeout: 180_000 }, () =>
  asNarrow({ "max-channels": 5 }, (broker) =>
    Effect.gen(function* () {
      const { queue, settled } = yield* holding(broker)
      const since = broker.connection()
      const queues = Array.from({ length: 20 }, (_, index) => (index % 4 === 0 ? queue : queueName("missing")))
      for (let round = 0; round < 3; round++) {
        const counts = yield* Effect.forEach(queues, broker.admin.counts, { concurrency: "unbounded" })
        assert.deepStrictEqual(
          counts.map(({ isMissing = false }) => isMissing),
          queues.map((name) => name !== queue)
        )
      }
      assert.deepStrictEqual(broker.connection(), since)
      yield* settled
    })
  )
)
