/**
 * Measures the status of 200 queues, each with its dead-letter queue, as the console's overview and `requeue status` ask for it:
 * the connection, a first round, and ten more; with the milliseconds of this process's own work.
 *
 *     node --conditions=@requeue/source test/figures/status.ts URL
 */
import { Broker, RetryPolicy } from "@requeue/core"
import { QueueStatus } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Queues from "./queues.ts"

const [url = "memory:"] = process.argv.slice(2)
const retry = RetryPolicy.make()

const timed = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const [begun, cpu] = [performance.now(), process.cpuUsage()]
    yield* work
    const { system, user } = process.cpuUsage(cpu)
    return { millis: Math.round(performance.now() - begun), own: Math.round((system + user) / 1000) }
  })

const round = Effect.flatMap(Broker.Broker, (broker) =>
  Effect.forEach(Queues.names(200), (queue) => QueueStatus.of(broker, { queue, retry }), { concurrency: 256 })
)

const program = Effect.gen(function* () {
  const begun = performance.now()
  const config = yield* Queues.configured(url, Queues.names(200))
  return yield* Effect.gen(function* () {
    yield* Broker.Broker
    const connected = Math.round(performance.now() - begun)
    const first = yield* timed(round)
    const later = yield* Effect.forEach(Array.from({ length: 10 }), () => Effect.delay(timed(round), 1100))
    console.log(JSON.stringify({ connected, first, later }))
  }).pipe(Effect.provide(config.layer()))
})

await Effect.runPromise(Effect.scoped(program))
