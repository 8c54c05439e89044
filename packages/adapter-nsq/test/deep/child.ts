/**
 * A consumer in a process of its own, to be killed: `node child.ts <url> <queue> <runs that end>`. Says
 * `run <id> <attempts>` for every run; those after the ones that end stay until the process is killed.
 */
import { Broker, Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import { NsqBroker } from "../../src/index.ts"

const [url, queue, ending] = process.argv.slice(2)
let runs = 0

const program = Effect.gen(function* () {
  const broker = yield* NsqBroker.make({ url: url!, messageTimeout: 2000 })
  yield* Effect.provideService(
    Consumer.start(queue!, { concurrency: 3 }, (message) => {
      console.log(`run ${message.id} ${message.attempts}`)
      runs += 1
      return runs > Number(ending) ? Effect.never : Effect.sleep(5)
    }),
    Broker.Broker,
    broker
  )
  return yield* Effect.never
})

await Effect.runPromise(Effect.scoped(program))
