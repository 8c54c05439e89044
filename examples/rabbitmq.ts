// RabbitMQ: a queue bound to a topic exchange. Run: BROKER_URL=amqp://127.0.0.1 node examples/rabbitmq.ts
import { RabbitMqNative } from "@requeue/adapter-rabbitmq"
import { connect, exponential } from "@requeue/core/promise"

const requeue = await connect(
  {
    url: process.env["BROKER_URL"]!,
    exchanges: { "examples.events": { type: "topic" } },
    queues: { "examples.orders": { bindings: [{ exchange: "examples.events", routingKey: "order.*" }] } }
  },
  { logger: false }
)
const ended = Promise.withResolvers<void>()

await requeue.consume<{ total: number }>(
  "examples.orders",
  { retry: { maxRetries: 3, backoff: exponential("100 millis") } },
  (message) => {
    console.log(`attempt ${message.attempts}: ${RabbitMqNative.of(message)?.routingKey}`)
    if (message.attempts === 1) throw new Error("503")
    ended.resolve()
  }
)
const native = RabbitMqNative.make({ exchange: "examples.events", routingKey: "order.paid" })
await requeue.send("order.paid", { total: 9.5 }, { native })
await ended.promise
await requeue.close()

// prints:
// attempt 1: order.paid
// attempt 2: order.paid
