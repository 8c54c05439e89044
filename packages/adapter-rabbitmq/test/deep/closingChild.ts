/** A process whose server falls silent while handlers run: it drains, closes, and has nothing left that keeps it. */
import { Broker, Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import { once } from "node:events"
import { RabbitMqBroker } from "../../src/index.ts"

const [url = "", queue = ""] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const broker = yield* RabbitMqBroker.make({ url })
  const started = Consumer.start(queue, { concurrency: 3 }, () => {
    console.log("run")
    return Effect.never
  })
  const consumer = yield* Effect.provideService(started, Broker.Broker, broker)
  console.log("ready")
  yield* Effect.promise(() => once(process.stdin, "data"))
  process.stdin.destroy()
  const { elapsed } = yield* consumer.drain("1 second")
  console.log(`drained ${Math.round(elapsed)}`)
})
await Effect.runPromise(Effect.scoped(program))
console.log("closed")
