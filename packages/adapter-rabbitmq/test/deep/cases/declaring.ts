/** What a consumer needs is there on each connection, and queues of former settings are used as they are. */
import { Backoff, RetryPolicy } from "@requeue/core"
import { Check } from "@requeue/conformance"
import type { Channel } from "amqplib"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { RabbitMqOptions, RabbitMqPlan } from "../../../src/index.ts"
import { consume, no, raw, type Run } from "../traps/trap.ts"
import { outgoing, queueName, reasonOf, until } from "../../world.ts"
import { test } from "../../real/cases/Adapter.ts"

/** Deletes a queue, and makes the same one, as its consumer does. */
const remake = async (channel: Channel, queue: string) => {
  const { arguments: args } = RabbitMqPlan.queue(queue, Result.getOrThrow(RabbitMqOptions.decode({})))
  await channel.deleteQueue(queue)
  await channel.assertQueue(queue, { arguments: args })
}

export const cases = [
  test("a queue that somebody has made again is not told as full", (adapter, on) => {
    const queue = queueName("remade")
    const refused: Array<unknown> = []
    return on({}, (broker) =>
      Effect.gen(function* () {
        const send = Effect.match(broker.publish([outgoing(queue, "a")]), {
          onFailure: (error) => void refused.push(reasonOf(error)),
          onSuccess: () => {}
        })
        yield* send
        for (let round = 0; round < 10; round++) {
          // Each message sees one deletion at most.
          let isOver = false
          const sends = Array.from({ length: 20 }, () => Effect.repeat(send, { until: () => isOver }))
          const remade = Effect.promise(() => raw(adapter.server.url, (channel) => remake(channel, queue)))
          const over = Effect.map(remade, () => void (isOver = true))
          yield* Effect.all([...sends, over], { concurrency: "unbounded", discard: true })
        }
        Check.isTrue("it is not full", !refused.includes("QueueFull"), refused)
      })
    )
  }),

  test("a queue that was made under another delivery limit is consumed, also on the next connection", (adapter, on) =>
    Effect.gen(function* () {
      const { proxy } = adapter.server
      const queue = queueName("former")
      const runs: Array<Run> = []
      yield* on({ deliveryLimit: 20 }, (broker) => broker.publish([outgoing(queue, "a")]))
      yield* on({}, (broker) =>
        Effect.gen(function* () {
          yield* consume(queue, runs, {})
          yield* until("the first", () => runs.length === 1)
          proxy.cut()
          yield* until("the cut is noticed", () => broker.connection().state === "down")
          yield* until("it is up again", () => broker.connection().state === "up")
          yield* broker.publish([outgoing(queue, "b")])
          yield* until("the second", () => runs.length === 2)
        })
      )
    })),

  test("a binding that is deleted while the server is out of reach is there again on the next connection", (adapter, on) =>
    Effect.gen(function* () {
      const { proxy, url } = adapter.server
      const [queue, prefix] = [queueName("unbound"), queueName("p").slice(0, 20)]
      const runs: Array<Run> = []
      const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(50) })
      yield* on({ prefix }, (broker) =>
        Effect.gen(function* () {
          yield* consume(queue, runs, { retry }, ({ attempts }) => (attempts === 1 ? no() : undefined))
          yield* broker.publish([outgoing(queue, "a")])
          yield* until("a retry", () => runs.length === 2)
          proxy.refuse(true)
          proxy.cut()
          yield* Effect.promise(() => raw(url, (channel) => channel.unbindQueue(queue, `${prefix}.v1.deliver`, queue)))
          proxy.refuse(false)
          yield* until("it is up again", () => broker.connection().state === "up")
          yield* broker.publish([outgoing(queue, "b")])
          yield* until("a retry of what came then", () => runs.length === 4)
          Check.equal(
            "runs",
            runs.map(({ attempts, id }) => `${id}${attempts}`),
            ["a1", "a2", "b1", "b2"]
          )
        })
      )
    }))
]
