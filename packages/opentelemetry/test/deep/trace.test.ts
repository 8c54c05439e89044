/** One message that fails twice, is dead-lettered, and is sent back to work: one trace, the same on every broker. */
import * as OtelTracer from "@effect/opentelemetry/OtelTracer"
import { MemoryBroker } from "@requeue/adapter-memory"
import { NsqBroker } from "@requeue/adapter-nsq"
import { RabbitMqBroker } from "@requeue/adapter-rabbitmq"
import { SqsBroker } from "@requeue/adapter-sqs"
import { start } from "@requeue/brokers"
import { VirtualTime } from "@requeue/conformance"
import { Backoff, type Broker, Consumer, type Event, Producer, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { OpenTelemetry } from "../../src/index.ts"
import * as Recorder from "../recorder.ts"

interface Row {
  readonly name: string
  /** Opens the broker, and closes it with the scope. */
  readonly open: Effect.Effect<Layer.Layer<Broker.Broker, unknown>, unknown, Scope.Scope>
  /** Milliseconds between two attempts. */
  readonly delay: number
  readonly around: <A, E>(program: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

/** A further broker needs a row and nothing else. */
const rows: ReadonlyArray<Row> = [
  {
    name: "memory, in virtual time",
    open: Effect.succeed(MemoryBroker.layer()),
    delay: 60_000,
    around: VirtualTime.run
  },
  {
    name: "rabbitmq",
    open: Effect.map(
      Effect.acquireRelease(
        Effect.promise(() => start("rabbitmq")),
        (broker) => Effect.promise(broker.dispose)
      ),
      ({ url }) => RabbitMqBroker.layer({ url })
    ),
    delay: 200,
    around: (program) => program
  },
  {
    name: "nsq",
    open: Effect.map(
      Effect.acquireRelease(
        Effect.promise(() => start("nsq")),
        (broker) => Effect.promise(broker.dispose)
      ),
      ({ url }) => NsqBroker.layer({ url })
    ),
    // A new channel's delays are looked after only after up to 5 seconds; a delay of 0 needs no looking after.
    delay: 0,
    around: (program) => program
  },
  {
    name: "sqs",
    open: Effect.map(
      Effect.acquireRelease(
        Effect.promise(() => start("sqs")),
        (broker) => Effect.promise(broker.dispose)
      ),
      // A poll is never cut off: the end of the consumer waits for it.
      ({ url }) => SqsBroker.layer({ url, waitTime: 1000 })
    ),
    delay: 1000,
    around: (program) => program
  }
]

const story = (queue: string, delay: number) =>
  Effect.gen(function* () {
    const events: Array<Event.Event> = []
    const until = (tag: Event.Event["_tag"]) =>
      Effect.gen(function* () {
        while (!events.some(({ _tag }) => _tag === tag)) yield* Effect.sleep(20)
      })
    const producer = yield* Producer.make(queue)
    let isDown = true
    yield* Consumer.start(
      queue,
      {
        retry: RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(delay) }),
        onEvent: (event) => void events.push(event)
      },
      () => Effect.withSpan(isDown ? Effect.fail(new Error("the shop is closed")) : Effect.void, "charge")
    )
    yield* producer.send({ id: 7 })
    yield* until("DeadLettered")
    isDown = false
    const letters = yield* DeadLetters.make(`${queue}.dlq`)
    yield* letters.redrive()
    yield* until("Succeeded")
  })

const page = readFileSync(new URL("../../../../docs/observability.md", import.meta.url), "utf8")
const [, recorded] = /```text trace\n([\s\S]*?)\n```/.exec(page) ?? []

describe("the trace of a message that fails twice, is dead-lettered and redriven", () => {
  test.each(rows)("$name", { timeout: 120_000 }, async ({ around, delay, open }) => {
    const recorder = Recorder.make()
    const { tracerProvider } = recorder
    const queue = `orders-${randomUUID().slice(0, 8)}`
    const spans = OtelTracer.layer.pipe(Layer.provide(Layer.succeed(OtelTracer.OtelTracerProvider, tracerProvider)))
    const program = Effect.gen(function* () {
      const broker = yield* open
      const layer = Layer.mergeAll(broker, OpenTelemetry.layer({ tracerProvider }), spans)
      yield* Effect.provide(Effect.scoped(story(queue, delay)), layer)
    })
    const quiet = Effect.provideService(Effect.scoped(program), References.MinimumLogLevel, "None")
    await Effect.runPromise(around(quiet))
    expect(recorder.traces()).toBe(1)
    expect(recorder.tree({ [queue]: "orders", [`delay=${delay / 1000}`]: "delay=60" })).toBe(recorded)
  })
})
