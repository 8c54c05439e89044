// The same library with Effect. Run: node examples/effect.ts
import { MemoryBroker } from "@requeue/adapter-memory"
import { Backoff, Consumer, Producer, QueueDefinition, RetryPolicy } from "@requeue/core"
import { SchemaCodec } from "@requeue/core/schema"
import { Deferred, Effect, References, Schema } from "effect"

const Order = Schema.Struct({ id: Schema.String, placedAt: Schema.Date })
const orders = QueueDefinition.make("orders", { codec: SchemaCodec.make(Order) })
const retry = RetryPolicy.make({ maxAttempts: 5, backoff: Backoff.linear("10 seconds", { max: "1 minute" }) })

const program = Effect.gen(function* () {
  const done = yield* Deferred.make<string>()
  yield* Consumer.start(orders, { retry }, (message) => Deferred.succeed(done, message.body.id))
  const producer = yield* Producer.make(orders)
  yield* producer.send({ id: "o1", placedAt: new Date() })
  return yield* Deferred.await(done)
}).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()), Effect.provideService(References.MinimumLogLevel, "Warn"))

console.log(await Effect.runPromise(program))

// prints:
// o1
