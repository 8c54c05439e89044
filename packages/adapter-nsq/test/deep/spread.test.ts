/** Where topics come into being, and that they come back whole, on real nsqd. */
import { RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import type { NsqOptions } from "../../src/index.ts"
import { channels } from "../real/raw.ts"
import { server } from "./server.ts"
import { consume, ids, no, on, publishAll, queueName, until, type Run } from "../world.ts"

const three = await server({ nodes: 3 })
const retry = RetryPolicy.make({ maxRetries: 0 })

test("a queue that one of three nsqd has stays there, whoever consumes it", async () => {
  const queue = queueName("home")
  const home = { nsqd: [three.direct.nsqd![2]!] }
  await on(home, (broker) => publishAll(broker, queue, ids(5)))
  const lookup = `http://${three.found.lookupd![0]!}/lookup?topic=${queue}`
  await Effect.runPromise(until("an nsqlookupd that knows the topic", async () => (await fetch(lookup)).ok))
  for (let process = 0; process < 4; process++) {
    await on(three.found, () =>
      Effect.gen(function* () {
        const runs: Array<Run> = []
        yield* consume(queue, runs, { retry }, no)
        yield* Effect.promise(() => on(home, (broker) => publishAll(broker, queue, ids(1))))
        yield* until("a run", () => runs.length > 0)
        const dead = yield* DeadLetters.make(`${queue}.dlq`)
        yield* until("a dead letter", async () => ((await Effect.runPromise(dead.count)) ?? 0) > 0)
      })
    )
  }
  const places = (await channels(three.http, queue)).map(({ http }) => http)
  assert.deepStrictEqual([...new Set(places)], [three.http[2]])
})

// The first connection on which is published to the nsqd of the queue is made for the first dead letter, unless it is the one
// that the process would publish to anyway: each has another.
test.each([1, 2, 3, 4])("what is settled when a program ends is stored once, where its queue is (%i)", async () => {
  const queue = queueName("ending")
  const [home, wire] = [three.direct.nsqd![2]!, three.wires[2]!]
  await on({ nsqd: [home] }, (broker) => publishAll(broker, queue, ids(3)))
  const lookup = `http://${three.found.lookupd![0]!}/lookup?topic=${queue}`
  await Effect.runPromise(until("an nsqlookupd that knows the topic", async () => (await fetch(lookup)).ok))
  wire.delay(100)
  const runs: Array<Run> = []
  const resolveAddress: NsqOptions.Options["resolveAddress"] = ({ host, httpPort, port }) => ({
    host,
    port: home.endsWith(`:${port}`) ? wire.port : port,
    httpPort
  })
  await on({ ...three.found, resolveAddress }, () =>
    Effect.andThen(
      consume(queue, runs, { retry }, no),
      until("a run", () => runs.length > 0)
    )
  ).finally(() => wire.delay(0))
  const held = async () => (await channels(three.http, queue)).filter(({ ready }) => ready > 0)
  const count = (all: Awaited<ReturnType<typeof held>>) =>
    all.reduce((sum, { ready, untaken }) => sum + ready - untaken, 0)
  // A message on its way from its topic to its channel is in neither count.
  await Effect.runPromise(until("all three", async () => count(await held()) >= 3))
  const all = await held()
  assert.deepStrictEqual([...new Set(all.map(({ http }) => http))], [three.http[2]])
  assert.strictEqual(count(all), 3)
  assert.isTrue(all.some(({ topic }) => topic.endsWith(".dlq")))
})

test.each(["topic", "channel"] as const)(
  "a %s of dead letters that is deleted comes back with its channel, and with what comes meanwhile",
  async (kind) => {
    const queue = queueName("deleted")
    const topic = `${queue}.requeue.dlq`
    const [http] = three.http
    const runs: Array<Run> = []
    await on({ nsqd: [three.direct.nsqd![0]!] }, (broker) =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry }, no)
        const depth = async () => {
          const found = (await channels([http], topic)).find(({ name }) => name === "requeue")
          return found?.ready
        }
        yield* publishAll(broker, queue, ids(1, "a"))
        yield* until("the first dead letter", async () => (await depth()) === 1)
        const path = kind === "topic" ? `topic/delete?topic=${topic}` : `channel/delete?topic=${topic}&channel=requeue`
        yield* Effect.promise(() => fetch(`http://${http}/${path}`, { method: "POST" }))
        yield* publishAll(broker, queue, ids(3, "b"))
        yield* until("the others", async () => (await depth()) === 3)
      })
    )
  }
)
