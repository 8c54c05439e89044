/** Prints the files and functions that one acked message crosses, from the broker's delivery to its ack, as JSON. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import { Session } from "node:inspector/promises"

const session = new Session()
session.connect()
await session.post("Profiler.enable")
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false })

/** The functions of our sources that ran since the last call, by their file. */
const crossed = async (): Promise<Record<string, ReadonlyArray<string>>> => {
  const { result } = await session.post("Profiler.takePreciseCoverage")
  const ours = result.filter(({ url }) => /\/packages\/[a-z-]+\/src\//.test(url))
  return Object.fromEntries(
    ours.flatMap(({ functions, url }) => {
      const ran = functions.filter(({ functionName, ranges }) => ranges[0]!.count > 0 && functionName !== "")
      return ran.length === 0 ? [] : [[url.replace(/^.*\/packages\//, ""), ran.map(({ functionName }) => functionName)]]
    })
  )
}

const program = Effect.gen(function* () {
  const { broker, control } = yield* MemoryBroker.makeControlled()
  const body = new TextEncoder().encode("{}")
  let handled = 0
  const consumer = yield* Effect.provideService(
    Consumer.start("work", {}, () => void handled++),
    Broker.Broker,
    broker
  )
  const settle = Effect.gen(function* () {
    const before = handled
    yield* control.publishRaw("work", body)
    while (handled === before || consumer.stats().inProgress > 0) yield* Effect.yieldNow
  })
  // The first messages also do what is done once.
  for (let warm = 0; warm < 3; warm++) yield* settle
  yield* Effect.promise(crossed)
  yield* settle
  const way = yield* Effect.promise(crossed)
  process.stdout.write(`${JSON.stringify(way, undefined, 2)}\n`)
}).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))

await Effect.runPromise(program)
