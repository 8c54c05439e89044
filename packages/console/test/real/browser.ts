/** Chromium on a console with a broken run: two brokers, causes large and small, and one broker that is down. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { chromium as chromiumOf } from "@requeue/brokers"
import { Broker, BrokerError, Consumer } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { chromium } from "playwright-core"
import { Authorization, type BrokerSource, Console, NodeServer } from "../../src/index.ts"
import * as World from "../world.ts"

const down = Layer.effect(
  Broker.Broker,
  Effect.fail(
    new BrokerError.BrokerError({
      broker: "nsq",
      operation: "connect",
      reason: "ConnectionFailed",
      detail: "connect ECONNREFUSED 10.0.0.9:4150",
      remedy: "Is nsqd running?"
    })
  )
)

/** How many letters each cause has. */
const causes = {
  "connect ECONNREFUSED 10.0.4.7:8443": 20,
  "HTTP 503 from shop.example": 5,
  "card number is invalid": 1
}

const body = (n: number) =>
  JSON.stringify({ order: 88_213 + n, pieces: 2, card: { cardNumber: "4242 4242 4242 4242" }, note: "<b>fragile</b>" })

/** A console at a URL, whose letters wait. `heal` starts a consumer that takes whatever comes. */
export const world = Effect.gen(function* () {
  const broker = yield* MemoryBroker.make()
  yield* World.queueOfLetters(broker)
  const now = yield* Clock.currentTimeMillis
  const letters = Object.entries(causes).flatMap(([error, count], cause) =>
    Array.from({ length: count }, (_, n) =>
      World.outgoing(
        {
          id: `order-${cause}${n}`,
          error,
          body: body(n),
          headers: { "content-type": "application/json", tenant: "acme" }
        },
        now - 3 * 3_600_000 + n * 60_000
      )
    )
  )
  yield* broker.publish(letters)
  const layer = Layer.succeed(Broker.Broker, broker)
  const brokers: ReadonlyArray<BrokerSource.BrokerSource> = [
    { name: "rabbit", queues: World.queues, layer, secrets: [] },
    { name: "nsq", queues: World.queues, layer: down, secrets: [] }
  ]
  const authorize = Authorization.everybody("oncall", "purge")
  const console = yield* Console.make({ brokers, audit: () => {}, authorize })
  const heal = Effect.provideService(
    Consumer.start("orders", {}, () => {}),
    Broker.Broker,
    broker
  )
  return { url: (yield* NodeServer.serve(console, { port: 0 })).href, heal, broker }
})

/** Chromium without a screen. As root it needs no sandbox of its own: it sees nothing but these pages. */
export const browser = Effect.acquireRelease(
  Effect.promise(async () => {
    const executablePath = await chromiumOf()
    return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] })
  }),
  (opened) => Effect.promise(() => opened.close())
)
