/** A consumer in a process of its own, to be killed: `node child.ts <url> <queue>`. Says `run <id>` for every run. */
import { Broker, Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import { SqsBroker } from "../../src/index.ts"

const [url, queue] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const broker = yield* SqsBroker.make({ url: url!, waitTime: 1000, visibilityTimeout: 3000 })
  yield* Effect.provideService(
    Consumer.start(queue!, { concurrency: 3 }, (message) => {
      console.log(`run ${message.id} ${message.attempts}`)
      return Effect.sleep(60_000)
    }),
    Broker.Broker,
    broker
  )
  return yield* Effect.never
})

await Effect.runPromise(Effect.scoped(program))
