/** Messages that are published to exchanges of the user's own. */
import { Check } from "@requeue/conformance"
import { Backoff, BrokerError, Consumer, Producer, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import type { Channel } from "amqplib"
import * as Effect from "effect/Effect"
import { RabbitMqNative } from "../../../src/index.ts"
import { no, raw } from "../traps/trap.ts"
import { drainIds, queueName, until } from "../../world.ts"
import { test } from "../../real/cases/Adapter.ts"

const topic = () => {
  const [exchange, queue] = [queueName("events"), queueName("bound")]
  const exchanges = { [exchange]: { type: "topic" } }
  const queues = { [queue]: { bindings: [{ exchange, routingKey: "order.*" }] } }
  return { exchange, queue, options: { exchanges, queues } }
}

const send = (queue: string, native: RabbitMqNative.Options) =>
  Effect.flatMap(Producer.make<string>(queue), (producer) =>
    producer.send("x", { native: RabbitMqNative.make(native) })
  )

export const cases = [
  test("a message that came through an exchange tells the same of it at each attempt, and as a letter", (_, on) => {
    const { exchange, options, queue } = topic()
    const told: Array<unknown> = []
    const tell = (message: Parameters<typeof RabbitMqNative.of>[0]) => {
      const facts = RabbitMqNative.of(message)
      told.push([facts?.exchange, facts?.routingKey, facts?.type])
    }
    const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.sequence([0, 60]) })
    return on(options, () =>
      Effect.gen(function* () {
        yield* Consumer.start(queue, { retry }, (message) => {
          tell(message)
          return no()
        })
        yield* send("order paid", { exchange, routingKey: "order.paid", type: "paid" })
        const letters = yield* DeadLetters.make(`${queue}.dlq`)
        yield* until("the letter", async () => (await Effect.runPromise(letters.list())).map(tell).length > 0, 5000)
        Check.equal(
          "told",
          told,
          Array.from({ length: 4 }, () => [exchange, "order.paid", "paid"])
        )
      })
    )
  }),

  test("a routing key that leads nowhere is told, and holds up no other key of its exchange", (_, on) => {
    const { exchange, options, queue } = topic()
    let runs = 0
    return on(options, () =>
      Effect.gen(function* () {
        yield* Consumer.start(queue, {}, () => void runs++)
        const error = yield* Effect.flip(send("lost", { exchange, routingKey: "invoice.paid" }))
        Check.isTrue("it is told", error instanceof BrokerError.BrokerError && error.reason === "Unroutable")
        yield* send("order paid", { exchange, routingKey: "order.paid" })
        yield* until("the other", () => runs === 1, 5000)
      })
    )
  }),

  test("a send to an exchange makes the queues that are bound to it, and again when somebody deletes one", (adapter, on) => {
    const { exchange, options, queue } = topic()
    const alone = queueName("alone")
    const queues = { ...options.queues, [alone]: { bindings: options.queues[queue]!.bindings, exclusive: true } }
    const { url } = adapter.server
    const remove = (deletion: (channel: Channel) => Promise<unknown>) => Effect.promise(() => raw(url, deletion))
    const drained = Effect.promise(() => drainIds(url, queue))
    return on({ ...options, queues }, () =>
      Effect.gen(function* () {
        const producer = yield* Producer.make<string>("events")
        const native = RabbitMqNative.make({ exchange, routingKey: "order.paid" })
        yield* producer.send("x", { id: "a", native })
        yield* remove((channel) => channel.deleteExchange(exchange))
        yield* producer.send("x", { id: "b", native })
        Check.equal("stored", yield* drained, ["a", "b"])
        yield* remove((channel) => channel.deleteQueue(queue))
        yield* producer.send("x", { id: "c", native })
        Check.equal("stored again", yield* drained, ["c"])
        const isMissing = raw(url, (channel) => channel.checkQueue(alone)).then(
          () => false,
          (error) => String(error).includes("no queue")
        )
        Check.isTrue("an exclusive queue is left to its consumer", yield* Effect.promise(() => isMissing))
      })
    )
  }),

  test("a user id that the server refuses fails its own message, and no other fails or comes twice", (adapter, on) => {
    const queue = queueName("users")
    const userIds: Readonly<Record<number, string>> = { 10: new URL(adapter.server.url).username, 20: "somebody" }
    return on({}, () =>
      Effect.gen(function* () {
        const producer = yield* Producer.make<string>(queue)
        yield* producer.send("x", { id: "first" })
        const sends = Array.from({ length: 40 }, (_, index) =>
          Effect.result(producer.send("x", { id: `${index}`, native: RabbitMqNative.make({ userId: userIds[index] }) }))
        )
        const failures = (yield* Effect.all(sends, { concurrency: "unbounded" })).flatMap((result) =>
          result._tag === "Failure" ? [result.failure] : []
        )
        Check.equal("failures", failures.length, 1)
        const remedy = "Leave userId out, or set it to the user that logs in"
        Check.isTrue("the remedy", String(failures[0]).includes(remedy), failures)
        Check.equal("stored, each once", (yield* Effect.promise(() => drainIds(adapter.server.url, queue))).length, 40)
      })
    )
  })
]
