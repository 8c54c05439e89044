/**
 * A consumer of batches in a process of its own, to be killed: `node killedChild.ts <url> <queue>`. Says `run <id>` for every
 * message of a batch. Every seventh message is retried once by each process.
 */
import { BatchPolicy, Broker, Consumer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import { SqsBroker } from "../../src/index.ts"

const [url, queue] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const broker = yield* SqsBroker.make({ url: url!, waitTime: 1000, visibilityTimeout: 4000 })
  const batch = BatchPolicy.make({ maxBatchSize: 10, maxBatchTimeout: 20 })
  const begun = new Set<string>()
  yield* Effect.provideService(
    Consumer.startBatch(
      queue!,
      { batch, concurrency: 5, retry: RetryPolicy.make({ maxRetries: 50 }) },
      ({ messages }) => {
        console.log(messages.map(({ id }) => `run ${id}`).join("\n"))
        return Effect.map(Effect.sleep(5), () => {
          for (const message of messages) {
            if (Number(message.id.slice(1)) % 7 === 0 && !begun.has(message.id)) message.retry()
            begun.add(message.id)
          }
        })
      }
    ),
    Broker.Broker,
    broker
  )
  return yield* Effect.never
})

await Effect.runPromise(Effect.provideService(Effect.scoped(program), References.MinimumLogLevel, "None"))
