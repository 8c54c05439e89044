/** Messages that are published to exchanges of the user's own. */
import { Check } from "@requeue/conformance"
import { Backoff, BrokerError, Consumer, DeadLetters, Producer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { RabbitMqNative } from "../../src/index.ts"
import { no } from "../traps/trap.ts"
import { queueName, until } from "../world.ts"
import { test } from "./Adapter.ts"

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
  })
]
