/** What somebody else holds, or has made otherwise, while consumers and producers run: they are told, wait, and go on. */
import { Backoff, Broker, type Consumer, type Event, RetryPolicy } from "@requeue/core"
import { connect } from "amqplib"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { assert, describe, test } from "vitest"
import { RabbitMqBroker, type RabbitMqOptions } from "../../src/index.ts"
import { counted } from "./counted.ts"
import { apart, type Server, shared } from "../real/server.ts"
import { consume, no, raw, type Run } from "./traps/trap.ts"
import { drainIds, outgoing, queueName, until } from "../world.ts"

const one = await shared()
const { url } = one
const within = 20_000

/** Log lines of one queue. */
type Lines = Array<{ readonly line: string; readonly error: string }>

/** Runs a program on a broker behind a proxy of its own, with the log lines of its queue. */
const on = (
  queue: string,
  options: RabbitMqOptions.Options,
  program: (
    broker: Broker.Service,
    own: Server,
    lines: Lines
  ) => Effect.Effect<void, unknown, Broker.Broker | Scope.Scope>
) =>
  Effect.gen(function* () {
    const lines: Lines = []
    const logger = Logger.make<unknown, void>(({ fiber, message }) => {
      const { errorMessage: error, queue: about } = fiber.getRef(References.CurrentLogAnnotations)
      if (about === queue) lines.push({ line: String([message].flat()[0]), error: String(error) })
    })
    const own = yield* apart(one)
    yield* Effect.gen(function* () {
      const broker = yield* RabbitMqBroker.make({ ...options, url: own.proxied })
      yield* Effect.provideService(program(broker, own, lines), Broker.Broker, broker)
    }).pipe(Effect.provide(Logger.layer([logger])))
  }).pipe(Effect.scoped, Effect.runPromise)

/** Somebody else's connection, which ends with the scope. */
const other = Effect.map(
  Effect.acquireRelease(
    Effect.promise(() => connect(url)),
    (model) => Effect.promise(() => model.close().catch(() => {}))
  ),
  (model) => ({ model, channel: () => Effect.promise(() => model.createChannel()) })
)

const because = (consumer: Consumer.Consumer): string => consumer.health().trouble?.because ?? ""

const isThere = (queue: string) =>
  raw(url, (channel) => channel.checkQueue(queue)).then(
    () => true,
    () => false
  )

/** Channels that attempts with a growing pause open in six seconds, and then some; without a pause there are hundreds. */
const few = 40

/** The number of channels that are opened while nothing changes for so long. */
const channelsWithin = (own: Server, millis: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const seen = yield* counted(own)
      yield* Effect.sleep(millis)
      return seen.channels()
    })
  )

describe.concurrent("a queue that somebody else holds", () => {
  test("alone, since a cut: health and one log line say so, sends fail, and it is made again after that", async () => {
    const queue = queueName("held")
    const runs: Array<Run> = []
    await on(queue, { queues: { [queue]: { exclusive: true } } }, (broker, own, lines) =>
      Effect.gen(function* () {
        const consumer = yield* consume(queue, runs, {})
        const { channel, model } = yield* other
        own.proxy.refuse(true)
        own.proxy.cut()
        yield* until("the end of the queue", async () => !(await isThere(queue)))
        const theirs = yield* channel()
        yield* Effect.promise(() => theirs.assertQueue(queue, { exclusive: true }))
        own.proxy.refuse(false)
        yield* until("health tells", () => because(consumer).includes(`'${queue}'`), within)
        assert.match(because(consumer), /belongs to another connection alone/)
        assert.isAtMost(yield* channelsWithin(own, 6000), few)
        assert.match(String(yield* Effect.flip(broker.publish([outgoing(queue, "a")]))), /another connection alone/)
        yield* Effect.promise(() => model.close())
        yield* until("it is consumed again", () => consumer.health().state === "running", within)
        // What was refused a moment ago has a pause.
        yield* Effect.retry(broker.publish([outgoing(queue, "b")]), { times: 20, schedule: Schedule.spaced(100) })
        yield* until("its run", () => runs.some(({ id }) => id === "b"), within)
        assert.deepStrictEqual(
          lines.map(({ line }) => line).filter((line) => /^(not consuming|consuming again)$/.test(line)),
          ["not consuming", "consuming again"]
        )
      })
    )
  })

  test("as its only consumer: the remedy is true, and what waits is handled after that", async () => {
    const queue = queueName("alone")
    const runs: Array<Run> = []
    const adopted: RabbitMqOptions.Options = { queues: { [queue]: { assert: "passive" } } }
    await raw(url, (channel) => channel.assertQueue(queue, { durable: true }))
    await on(queue, adopted, (broker, own, lines) =>
      Effect.gen(function* () {
        const { channel, model } = yield* other
        const theirs = yield* channel()
        yield* Effect.promise(() => theirs.consume(queue, () => {}, { exclusive: true }))
        const consumer = yield* consume(queue, runs, {})
        yield* until("health tells", () => because(consumer).includes(`'${queue}'`), within)
        assert.match(because(consumer), /exclusive use.*has the queue exclusively/)
        assert.isAtMost(yield* channelsWithin(own, 6000), few)
        // What was delivered to that consumer comes back when it ends.
        yield* broker.publish([outgoing(queue, "a")])
        yield* Effect.promise(() => model.close())
        yield* until("its run", () => runs.length === 1, within)
        assert.strictEqual(consumer.health().state, "running")
        assert.deepStrictEqual(
          lines.map(({ line }) => line).filter((line) => /^(not consuming|consuming again)$/.test(line)),
          ["not consuming", "consuming again"]
        )
      })
    )
  })
})

describe.concurrent("an exchange that is made again with another type", () => {
  test("of the user's own: a consumer that is cut is told, and goes on when it is mended", async () => {
    const [exchange, queue] = [queueName("events"), queueName("bound")]
    const runs: Array<Run> = []
    const options = {
      exchanges: { [exchange]: { type: "topic" } },
      queues: { [queue]: { bindings: [{ exchange, routingKey: "order.*" }] } }
    }
    const remake = (type?: string) =>
      Effect.promise(() =>
        raw(url, async (channel) => {
          await channel.deleteExchange(exchange)
          if (type !== undefined) await channel.assertExchange(exchange, type)
        })
      )
    const emit = (messageId: string) =>
      Effect.promise(() =>
        raw(url, async (channel) => void channel.publish(exchange, "order.created", Buffer.from('"x"'), { messageId }))
      )
    await on(queue, options, (broker, own, lines) =>
      Effect.gen(function* () {
        const consumer = yield* consume(queue, runs, {})
        yield* emit("a")
        yield* until("the first", () => runs.length === 1, within)
        yield* remake("fanout")
        // Nothing tells of that, until everything is declared again from time to time.
        const isTold = ({ error }: Lines[number]) => error.includes(`exchange '${exchange}'`)
        yield* until("the log tells", () => lines.some(isTold), 60_000)
        yield* broker.publish([outgoing(queue, "b")])
        yield* until("the second", () => runs.length === 2, within)
        own.proxy.cut()
        yield* until("health tells", () => because(consumer).includes(`exchange '${exchange}'`), within)
        assert.isAtMost(yield* channelsWithin(own, 6000), few)
        assert.isAtMost(lines.filter(isTold).length, 3)
        yield* remake()
        yield* until("it is consumed again", () => consumer.health().state === "running", within)
        yield* emit("c")
        yield* until("the third", () => runs.length === 3, within)
      })
    )
    assert.deepStrictEqual(
      runs.map(({ id }) => id),
      ["a", "b", "c"]
    )
  })

  test("in front of a delay: retries are neither lost nor early, and take that way again when it is mended", async () => {
    const [prefix, queue] = [queueName("p").slice(0, 20), queueName("rung")]
    const runs: Array<Run> = []
    const events: Array<Event.Event> = []
    const rung = `${prefix}.v1.q.delay.300`
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(300) })
    await on(queue, { prefix }, (broker, own, lines) =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry, onEvent: (event) => void events.push(event) }, ({ attempts }) =>
          attempts === 1 ? no() : undefined
        )
        const ended = () => events.flatMap((event) => (event._tag === "Succeeded" ? [event.id] : [])).toSorted()
        const isTold = ({ error }: Lines[number]) => error.includes(`exchange '${rung}'`)
        // Of this type, nothing is routed to the queue behind it.
        yield* Effect.promise(() =>
          raw(url, async (channel) => {
            await channel.deleteExchange(rung)
            await channel.assertExchange(rung, "topic", { durable: true })
          })
        )
        yield* broker.publish(["a", "b", "c"].map((id) => outgoing(queue, id)))
        yield* until("the log tells", () => lines.some(isTold), within)
        assert.isAtMost(yield* channelsWithin(own, 6000), 60)
        // Their delay is kept by the process.
        yield* until("their ends", () => ended().length === 3, within)
        assert.isTrue(events.some(({ _tag }) => _tag === "SettleFailed"))
        yield* Effect.promise(() => raw(url, (channel) => channel.deleteExchange(rung)))
        yield* broker.publish([outgoing(queue, "d")])
        yield* until("the end of one more", () => ended().length === 4, within)
        yield* until(
          "the second line",
          () => lines.some(({ line }) => line === "the server accepts messages again"),
          within
        )
      })
    )
    for (const [id, all] of Map.groupBy(runs, ({ id }) => id)) {
      const [first, second] = all
      assert.deepStrictEqual(
        all.map(({ attempts }) => attempts),
        [1, 2],
        id
      )
      assert.isAtLeast(second!.at - first!.at, 300)
    }
    assert.deepStrictEqual(await drainIds(url, queue), [])
    assert.deepStrictEqual(await drainIds(url, `${queue}.dlq`), [])
  })
})
