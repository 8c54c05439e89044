/** What is counted of a few messages' lives, in virtual time. */
import type { Attributes } from "@opentelemetry/api"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { MemoryBroker, type Faults } from "@requeue/adapter-memory"
import { VirtualTime } from "@requeue/conformance"
import { Backoff, type Broker, Consumer, ConsumerBackoff, Producer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { assert, describe, test } from "vitest"
import { OpenTelemetry } from "../src/index.ts"

/** Points by metric, as `label: value` of what differs. */
type Points = Readonly<Record<string, Readonly<Record<string, number>>>>

/** What every point has, and what says little. */
const plain = ["messaging.system", "messaging.system.name", "messaging.destination.name", "messaging.operation.type"]

const label = (attributes: Attributes): string =>
  Object.entries(attributes)
    .filter(([key]) => !plain.includes(key))
    .map(([, value]) => String(value))
    .join(" ")

/** A histogram's value is what its records add up to. */
const valueOf = (value: unknown): number => (typeof value === "number" ? value : (value as { sum: number }).sum)

const meterOf = () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const collect = Effect.promise(async (): Promise<Points> => {
    exporter.reset()
    await reader.forceFlush()
    const found = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
    return Object.fromEntries(
      found.map(({ dataPoints, descriptor }) => [
        descriptor.name,
        Object.fromEntries(dataPoints.map(({ attributes, value }) => [label(attributes), valueOf(value)]))
      ])
    )
  })
  return { meterProvider: new MeterProvider({ readers: [reader] }), collect }
}

const run = <A>(
  faults: Faults.Faults,
  program: (collect: Effect.Effect<Points>) => Effect.Effect<A, unknown, Broker.Broker | Scope.Scope>
): Promise<A> => {
  const { collect, meterProvider } = meterOf()
  const layer = Layer.mergeAll(
    MemoryBroker.layer({ faults }),
    OpenTelemetry.layer({ meterProvider }),
    Layer.succeed(References.MinimumLogLevel, "None")
  )
  return Effect.runPromise(VirtualTime.run(Effect.provide(Effect.scoped(program(collect)), layer)))
}

const failure = (name: string): Error => Object.assign(new Error("no"), { name })

describe("metrics", () => {
  test("tell attempts, retries and dead letters by reason, delays, and durations; never a message", async () => {
    const points = await run({}, (collect) =>
      Effect.gen(function* () {
        const producer = yield* Producer.make<string>("orders")
        yield* Consumer.start<string>(
          "orders",
          { retry: RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(60_000) }) },
          (message) =>
            Effect.gen(function* () {
              const { attempts, body } = message
              yield* Effect.sleep(500)
              if (body === "hopeless" || (body === "flaky" && attempts < 3)) yield* Effect.fail(failure("ShopClosed"))
              if (body === "asks" && attempts === 1) message.retry({ delay: "10 seconds" })
            })
        )
        for (const body of ["fine", "flaky", "hopeless", "asks"]) yield* producer.send(body, { id: `id-${body}` })
        yield* Effect.sleep("5 minutes")
        return yield* collect
      })
    )
    assert.deepStrictEqual(points["messaging.client.sent.messages"], { send: 4 })
    assert.deepStrictEqual(points["messaging.client.consumed.messages"], { process: 9 })
    assert.deepStrictEqual(points["messaging.process.duration"], { process: 2, "process ShopClosed": 2.5 })
    assert.deepStrictEqual(Object.keys(points["messaging.client.operation.duration"]!), [
      "send",
      "ack",
      "retry",
      "dead_letter"
    ])
    assert.deepStrictEqual(points["requeue.settlements"], {
      ack: 3,
      "ShopClosed retry": 4,
      retry: 1,
      "retries-exhausted orders.dlq ShopClosed dead_letter": 1
    })
    assert.deepStrictEqual(points["requeue.message.attempts"], { ack: 6, dead_letter: 3 })
    // Each waits for the handler runs before it; no later attempt counts.
    assert.deepStrictEqual(points["requeue.message.lag"], { "": 3 })
    assert.deepStrictEqual(points["requeue.retry.delay"], { "": 250 })
    assert.deepStrictEqual(points["requeue.retry.lateness"], { "": 0 })
    assert.notInclude(JSON.stringify(points), "id-")
  })

  test("tell how late a retry came, by the broker's clockwork", async () => {
    const points = await run({ capabilities: { delayResolution: 1000 } }, (collect) =>
      Effect.gen(function* () {
        const producer = yield* Producer.make("orders")
        yield* Consumer.start("orders", {}, (message) => {
          if (message.attempts === 1) message.retry({ delay: 1200 })
        })
        yield* producer.send(1)
        yield* Effect.sleep("1 minute")
        return yield* collect
      })
    )
    assert.deepStrictEqual(points["requeue.retry.delay"], { "": 1.2 })
    assert.closeTo(points["requeue.retry.lateness"]![""]!, 0.8, 1e-9)
  })

  test("of error names from anywhere are a hundred, and then _OTHER", async () => {
    const points = await run({}, (collect) =>
      Effect.gen(function* () {
        const producer = yield* Producer.make<number>("orders")
        let handled = 0
        yield* Consumer.start<number>("orders", { retry: RetryPolicy.make({ maxRetries: 0 }) }, ({ body }) => {
          handled++
          return Effect.fail(failure(`Error${body}`))
        })
        for (let body = 0; body < 120; body++) yield* producer.send(body)
        // The consumer gives others a turn of the event loop now and then, which takes no time of the clock.
        while (handled < 120) yield* Effect.sleep("1 second")
        yield* Effect.sleep("1 second")
        return yield* collect
      })
    )
    const durations = points["messaging.process.duration"]!
    assert.strictEqual(Object.keys(durations).length, 101)
    assert.isDefined(durations["process _OTHER"])
  })
})

describe("gauges", () => {
  test("tell consumers, what they hold, their backoff, the queue, and the connection", async () => {
    const [before, paused, after, ended] = await run({}, (collect) =>
      Effect.gen(function* () {
        let isDown = true
        const producer = yield* Producer.make("orders")
        const options = {
          consumerBackoff: ConsumerBackoff.nsq(),
          retry: RetryPolicy.make({ maxRetries: "unlimited" })
        }
        const handler = () => (isDown ? Effect.fail(failure("ShopClosed")) : Effect.sleep("1 hour"))
        const consumer = yield* Consumer.start("orders", options, handler)
        // Another one of the same queue adds to the same numbers.
        const other = yield* Consumer.start("orders", options, handler)
        const idle = yield* collect
        yield* producer.send(1, { delay: "1 hour" })
        for (let message = 0; message < 6; message++) yield* producer.send(message)
        yield* Effect.sleep(100)
        const down = yield* collect
        isDown = false
        yield* Effect.sleep("1 minute")
        yield* consumer.drain(0)
        const one = yield* collect
        yield* other.drain(0)
        return [idle, down, one, yield* collect]
      })
    )
    const gauges = (points: Points | undefined) => ({
      consumers: points?.["requeue.consumers"]?.[""],
      inFlight: points?.["requeue.consumer.in_flight"]?.[""],
      quarantined: points?.["requeue.consumer.quarantined"]?.[""],
      paused: points?.["requeue.consumer.paused"],
      level: points?.["requeue.consumer.backoff.level"],
      messages: points?.["requeue.queue.messages"],
      connected: points?.["requeue.broker.connected"]?.[""]
    })
    const none = { handler: 0, broker: 0, operator: 0 }
    assert.deepStrictEqual(gauges(before), {
      consumers: 2,
      inFlight: 0,
      quarantined: 0,
      paused: none,
      level: none,
      messages: { ready: 0, delayed: 0, in_flight: 0 },
      connected: 1
    })
    assert.deepStrictEqual(gauges(paused), {
      consumers: 0,
      inFlight: 0,
      quarantined: 0,
      paused: { handler: 2, broker: 0, operator: 0 },
      level: { handler: 1, broker: 0, operator: 0 },
      messages: { ready: 6, delayed: 1, in_flight: 0 },
      connected: 1
    })
    assert.deepStrictEqual(paused?.["requeue.consumer.pauses"], { handler: 2 })
    const states = { running: 0, paused: 2, probing: 0, stalled: 0, down: 0, draining: 0 }
    assert.deepStrictEqual(paused?.["requeue.consumer.count"], states)
    // The drained one holds nothing; the other has its probe.
    assert.deepStrictEqual([gauges(after).consumers, gauges(after).inFlight], [1, 1])
    assert.deepStrictEqual(
      [gauges(ended).consumers, gauges(ended).inFlight, gauges(ended).paused, gauges(ended).level],
      [0, 0, none, none]
    )
    // Nobody takes them any more, and the number goes on to be asked for.
    assert.deepStrictEqual(gauges(ended).messages, { ready: 6, delayed: 1, in_flight: 0 })
  })
})
