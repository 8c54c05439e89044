/** What the simulated RabbitMQ reports of its messages: the same from the same seed, and each delivery with its number. */
import { RabbitMqBroker } from "@requeue/adapter-rabbitmq"
import { Driver } from "@requeue/adapter-rabbitmq/driver"
import * as VirtualTime from "@requeue/conformance/VirtualTime"
import { Backoff, Broker, Consumer, RetryPolicy } from "@requeue/core"
import { Outgoing } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import * as Host from "../../src/servers/Host.ts"
import { make as makeDriver } from "../../src/servers/rabbitmq/Driver.ts"
import { Server } from "../../src/servers/rabbitmq/Server.ts"

/** Sends a message whose handler fails once, with a cut in between; returns what happened. */
const world = Effect.gen(function* () {
  const host = yield* Host.make
  const facts: Array<string> = []
  const server = new Server(host, {
    onFact: (fact) => {
      const why = fact._tag === "Gone" ? fact.why : ""
      facts.push(`${host.now() - VirtualTime.epoch} ${fact._tag} ${fact.queue} ${fact.entry.id} ${why}`)
    }
  })
  const { cut, driver } = makeDriver(server)
  const broker = yield* Effect.provideService(RabbitMqBroker.make(), Driver, driver)
  let runs = 0
  const retry = RetryPolicy.make({ backoff: Backoff.constant(1000) })
  yield* Effect.provideService(
    Consumer.start<string>("orders", { retry }, () => {
      if (runs++ === 0) throw new Error("no")
    }),
    Broker.Broker,
    broker
  )
  const now = yield* Clock.currentTimeMillis
  yield* broker.publish([
    Outgoing.make({ queue: "orders", id: "a", body: Buffer.from('"a"'), headers: {}, delay: 0 }, now)
  ])
  yield* Effect.sleep(500)
  cut()
  yield* Effect.sleep(5000)
  return facts
})

const run = () => Effect.runPromise(VirtualTime.run(Effect.scoped(world)))

test("the same seed gives the same facts", async () => {
  const facts = await run()
  assert.deepStrictEqual(await run(), facts)
  assert.deepStrictEqual(
    facts.map((fact) => fact.split(" ").slice(1, 3).join(" ")),
    [
      "Stored orders",
      "HandedOut orders",
      "Stored requeue.v1.q.delay.1000",
      "Gone orders",
      "Gone requeue.v1.q.delay.1000",
      "Stored orders",
      "HandedOut orders",
      "Gone orders"
    ]
  )
})
