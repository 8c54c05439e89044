/**
 * Prints the files and functions of ours that one acked message crosses, from the broker's delivery to the end of its ack,
 * as JSON.
 */
import { Broker, Consumer, type Delivery } from "@requeue/core"
import { MemoryBroker } from "@requeue/adapter-memory"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import { Session } from "node:inspector"

const session = new Session()
session.connect()
session.post("Profiler.enable")
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false })

type Way = Record<string, ReadonlyArray<string>>

/** The functions of our sources that ran since the last call, by their file. */
const crossed = (): Way => {
  const way: Way = {}
  // The inspector of one's own thread calls back at once.
  session.post("Profiler.takePreciseCoverage", (error, answer) => {
    if (error !== null) throw error
    for (const { functions, url } of answer.result) {
      const file = /\/packages\/([a-z-]+\/src\/.*)$/.exec(url)?.[1]
      const ran = functions.filter(({ functionName, ranges }) => ranges[0]!.count > 0 && functionName !== "")
      if (file !== undefined && ran.length > 0) way[file] = ran.map(({ functionName }) => functionName)
    }
  })
  return way
}

let way: Way = {}

/** The broker, which begins to count when it delivers, and ends when it has settled. */
const counted = (broker: Broker.Service): Broker.Service => ({
  ...broker,
  subscribe: (options) => {
    const onDelivery = (delivery: Delivery.Delivery): void => {
      crossed()
      options.onDelivery(delivery)
    }
    return Effect.map(broker.subscribe({ ...options, onDelivery }), (subscription) => ({
      ...subscription,
      settle: (requests) =>
        Effect.map(subscription.settle(requests), (failures) => {
          way = crossed()
          return failures
        })
    }))
  }
})

const program = Effect.gen(function* () {
  const { broker, control } = yield* MemoryBroker.makeControlled()
  const start = Consumer.start("work", {}, async () => {})
  const consumer = yield* Effect.provideService(start, Broker.Broker, counted(broker))
  // The first messages also do what is done once.
  for (let message = 0; message < 4; message++) {
    way = {}
    // Published apart, so that the end of the publish is not counted.
    consumer.pause()
    yield* control.publishRaw("work", new TextEncoder().encode("{}"))
    consumer.resume()
    while (Object.keys(way).length === 0) yield* Effect.yieldNow
  }
  process.stdout.write(`${JSON.stringify(way, undefined, 2)}\n`)
})

await Effect.runPromise(Effect.scoped(program).pipe(Effect.provideService(References.MinimumLogLevel, "None")))
