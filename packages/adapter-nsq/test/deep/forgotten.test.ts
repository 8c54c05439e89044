/** A subscription that nsqd has forgotten with its topic: heartbeats come on it, and no messages. */
import * as Effect from "effect/Effect"
import { once } from "node:events"
import { connect, createServer, type AddressInfo, type Socket } from "node:net"
import { afterAll, assert, test } from "vitest"
import { server } from "./server.ts"
import { consume, on, publishAll, queueName, until, type Run } from "../world.ts"

const one = await server()

/**
 * Leads the subscriptions of these connections, counted from 1, to a topic that nobody publishes to. So nsqd lists them no more
 * among the clients of their own.
 */
const astray = async (topic: string, which: ReadonlyArray<number>) => {
  const sockets = new Set<Socket>()
  let subscriptions = 0
  const between = createServer((client) => {
    const nsqd = connect(one.broker.nodes[0]!.port, "127.0.0.1")
    for (const socket of [client, nsqd]) sockets.add(socket.on("error", () => {}))
    client.on("close", () => nsqd.destroy())
    nsqd.on("close", () => client.destroy())
    nsqd.pipe(client)
    client.on("data", (bytes) => {
      const text = bytes.toString("latin1")
      const isOurs = text.includes(`SUB ${topic} `)
      if (isOurs) subscriptions++
      const isLed = isOurs && which.includes(subscriptions)
      nsqd.write(isLed ? text.replace(`SUB ${topic} `, `SUB ${topic.toUpperCase()} `) : text, "latin1")
    })
  })
  between.listen(0, "127.0.0.1")
  await once(between, "listening")
  const cut = () => sockets.forEach((socket) => socket.destroy())
  afterAll(() => {
    between.close()
    cut()
  })
  const { port } = between.address() as AddressInfo // It listens on TCP.
  return { options: { nsqd: [`127.0.0.1:${port}`], nsqdHttp: [one.http[0]] }, cut, subscriptions: () => subscriptions }
}

test("is made again, where nsqd has listed one before", async () => {
  const topic = queueName("forgotten")
  const way = await astray(topic, [2])
  const runs: Array<Run> = []
  await on(way.options, (broker) =>
    Effect.gen(function* () {
      yield* consume(topic, runs)
      // nsqd is asked after a second whether it lists the session.
      yield* Effect.sleep(1500)
      way.cut()
      yield* until("a subscription that leads astray", () => way.subscriptions() === 2)
      yield* publishAll(broker, topic, ["m"])
      yield* until("its run", () => runs.length === 1)
    })
  )
  assert.strictEqual(way.subscriptions(), 3)
})

test("stays where nsqd has never listed one: its HTTP interface may be that of another", async () => {
  const topic = queueName("never")
  const way = await astray(topic, [1])
  await on(way.options, () => Effect.andThen(consume(topic, []), Effect.sleep(2500)))
  assert.strictEqual(way.subscriptions(), 1)
})

test.each([1, 2])("topics that are deleted again and again come back with their consumers (%i)", async () => {
  const topics = Array.from({ length: 6 }, () => queueName("deleted"))
  const runs: Array<Run> = []
  await on(one.direct, (broker) =>
    Effect.gen(function* () {
      for (const topic of topics) yield* consume(topic, runs)
      for (let times = 0; times < 2; times++) {
        yield* Effect.sleep(1200)
        for (const topic of topics)
          yield* Effect.promise(() => fetch(`http://${one.http[0]}/topic/delete?topic=${topic}`, { method: "POST" }))
      }
      yield* Effect.sleep(1200)
      for (const topic of topics) yield* publishAll(broker, topic, [topic])
      yield* until("all of them", () => runs.length === topics.length)
    })
  )
})
