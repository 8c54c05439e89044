/** Queues that are deleted under a consumer, and made again: at once, otherwise, or by nobody. */
import { Broker, type Event, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { assert, test } from "vitest"
import { RabbitMqBroker, type RabbitMqOptions, RabbitMqQueue } from "../../src/index.ts"
import { shared } from "../real/server.ts"
import { consume, no, raw, type Run } from "./traps/trap.ts"
import { drainIds, on, outgoing, queueName, until } from "../world.ts"

const { url } = await shared()
const within = 20_000

test.each([
  ["quorum", "classic"],
  ["classic", "quorum"]
])(
  "an adopted queue that was %s and is %s now: what it is is found again, and attempts are counted",
  async (...types) => {
    const queue = queueName("remade")
    const [first, second] = types.map((type) => ({ durable: true, arguments: { "x-queue-type": type } }))
    const runs: Array<Run> = []
    const events: Array<Event.Event> = []
    await raw(url, (channel) => channel.assertQueue(queue, first))
    await on({ url, queues: { [queue]: { assert: "passive" } } }, (broker) =>
      Effect.gen(function* () {
        const retry = RetryPolicy.make({ maxRetries: 2 })
        const consumer = yield* consume(queue, runs, { retry, onEvent: (event) => void events.push(event) }, no)
        yield* broker.publish([outgoing(queue, "a")])
        const died = (id: string) => events.some((event) => event._tag === "DeadLettered" && event.id === id)
        yield* until("the first death", () => died("a"), within)
        yield* Effect.promise(() => raw(url, (channel) => channel.deleteQueue(queue)))
        yield* until("its loss", () => consumer.health().state === "down", within)
        yield* Effect.promise(() => raw(url, (channel) => channel.assertQueue(queue, second)))
        yield* until("its return", () => consumer.health().state === "running", within)
        yield* broker.publish([outgoing(queue, "b")])
        yield* until(
          () => `the second death, after ${runs.length} runs`,
          () => died("b"),
          within
        )
      })
    )
    assert.deepStrictEqual(
      runs.map(({ attempts, id }) => `${id}${attempts}`),
      ["a1", "a2", "a3", "b1", "b2", "b3"]
    )
    assert.deepStrictEqual((await drainIds(url, `${queue}.dlq`)).toSorted(), ["a", "b"])
  }
)

// 3.10 tells a consumer nothing of a quorum queue that is there again within some 15 ms.
test("a queue that is deleted and sent to at once delivers to its consumer", async () => {
  const queue = queueName("again")
  const runs: Array<Run> = []
  await on({ url }, () =>
    Effect.gen(function* () {
      yield* consume(queue, runs, {})
      yield* Effect.promise(() =>
        on({ url }, (producer) =>
          Effect.gen(function* () {
            yield* producer.publish([outgoing(queue, "a")])
            yield* until("the first", () => runs.length === 1, within)
            yield* Effect.promise(() => raw(url, (channel) => channel.deleteQueue(queue)))
            yield* producer.publish([outgoing(queue, "b")])
            yield* until("the second", () => runs.length === 2, within)
          })
        )
      )
    })
  )
  assert.deepStrictEqual(
    runs.map(({ id }) => id),
    ["a", "b"]
  )
})

test("an adopted queue whose dead letters have nowhere to go is told of at the start, and its consumer timeout", async () => {
  const queue = queueName("target")
  const lines: Array<string> = []
  const logs = Logger.layer([Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))])
  const args = { "x-queue-type": "quorum", "x-dead-letter-exchange": `${queue}.nowhere` }
  await raw(url, (channel) => channel.assertQueue(queue, { durable: true, arguments: args }))
  const told = { ...args, "x-consumer-timeout": 60_000 }
  const start = (queues: RabbitMqOptions.Options["queues"]) =>
    Effect.flatMap(RabbitMqBroker.make({ url, queues: queues! }), (broker) =>
      Effect.provideService(consume(queue, [], {}), Broker.Broker, broker)
    ).pipe(Effect.scoped, Effect.provide(logs))
  await Effect.runPromise(start({ [queue]: { assert: "passive" } }))
  const isTarget = (line: string) => line.includes(`"${queue}.nowhere" does not exist`)
  assert.strictEqual(lines.filter(isTarget).length, 1)
  // The remedy.
  await raw(url, async (channel) => {
    await channel.assertExchange(`${queue}.nowhere`, "fanout")
    await channel.assertQueue(`${queue}.letters`, { durable: true })
    await channel.bindQueue(`${queue}.letters`, `${queue}.nowhere`, "")
  })
  lines.length = 0
  await Effect.runPromise(start({ [queue]: { assert: "passive" } }))
  assert.isFalse(lines.some(isTarget))
  assert.deepStrictEqual(RabbitMqQueue.remarks(RabbitMqQueue.refused(queue, "quorum", told)), [
    `queue ${queue}: the server takes messages back after 1m: set handlerTimeout below that`
  ])
})

test("a queue that is gone, and may not be declared, is told once, and once when it is back", async () => {
  const queue = queueName("told")
  const lines: Array<unknown> = []
  const logs = Logger.layer([
    Logger.make<unknown, void>(({ fiber, message }) => {
      if (fiber.getRef(References.CurrentLogAnnotations)["queue"] === queue) lines.push(...[message].flat())
    })
  ])
  const make = () =>
    raw(url, (channel) => channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } }))
  await make()
  const program = Effect.gen(function* () {
    const broker = yield* RabbitMqBroker.make({ url, queues: { [queue]: { assert: "passive" } } })
    const consumer = yield* Effect.provideService(consume(queue, [], {}), Broker.Broker, broker)
    lines.length = 0
    yield* Effect.promise(() => raw(url, (channel) => channel.deleteQueue(queue)))
    // Some ten attempts.
    yield* Effect.sleep("10 seconds")
    yield* Effect.promise(make)
    yield* until("its return", () => consumer.health().state === "running", within)
    yield* until("the second line", () => lines.length > 1, within)
  })
  await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(logs)))
  assert.deepStrictEqual(lines, ["not consuming", "consuming again"])
})
