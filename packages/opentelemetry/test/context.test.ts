/** What travels from a producer to a handler, and on to what the handler sends, with Effect and without. */
import { context, propagation, trace } from "@opentelemetry/api"
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from "@opentelemetry/core"
import { AlwaysOffSampler } from "@opentelemetry/sdk-trace-base"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Consumer, Producer } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { assert, describe, test } from "vitest"
import { OpenTelemetry } from "../src/index.ts"
import * as Recorder from "./recorder.ts"
import { open, until } from "./stage.ts"

const incoming = {
  traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  tracestate: "vendor=a:b",
  baggage: "tenant=acme"
}

const withBaggage = new CompositePropagator({
  propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()]
})

/** Whose trace it is, its state and its baggage. */
const inherited = (headers: Readonly<Record<string, string>>) => [
  headers["traceparent"]?.slice(0, 36),
  headers["tracestate"],
  headers["baggage"]
]

const expected = [incoming.traceparent.slice(0, 36), incoming.tracestate, incoming.baggage]

test("a misspelt option is refused: spans would go elsewhere", () => {
  const options = { tracerProvder: Recorder.make().tracerProvider } as OpenTelemetry.Options
  assert.throws(
    () => OpenTelemetry.make(options),
    /OpenTelemetry.make: unknown option tracerProvder. Did you mean tracerProvider\?/
  )
})

test.each([
  ["tracerProvider", "a TracerProvider"],
  ["meterProvider", "a MeterProvider"],
  ["propagator", "a propagator"]
])("a %s of another kind is refused", (name, kind) =>
  assert.throws(
    () => OpenTelemetry.make({ [name]: {} }),
    new RegExp(`OpenTelemetry.make: ${name} must be ${kind}.*, got an object`)
  )
)

describe("trace, its state and baggage", () => {
  test("reach a promise's handler, and what it sends", async () => {
    await using stage = await open({}, { propagator: withBaggage })
    const active: Array<unknown> = []
    const sent: Array<Readonly<Record<string, string>>> = []
    await stage.requeue.consume("receipts", {}, ({ headers }) => void sent.push(headers))
    await stage.consume(async () => {
      await Promise.resolve()
      active.push(
        propagation.getActiveBaggage()?.getEntry("tenant")?.value,
        trace.getActiveSpan()?.spanContext().traceId
      )
      await stage.requeue.send("receipts", 1)
    })
    await stage.requeue.send("orders", 1, { headers: incoming })
    await until(() => sent.length > 0)
    assert.deepStrictEqual(active, ["acme", incoming.traceparent.slice(3, 35)])
    assert.deepStrictEqual(inherited(sent[0]!), expected)
  })

  for (const spanned of [false, true]) {
    test(`reach an Effect's handler, and what it sends ${spanned ? "in a span of its own" : ""}`, async () => {
      const recorder = Recorder.make()
      const sent: Array<Readonly<Record<string, string>>> = []
      const traces: Array<string> = []
      const program = Effect.gen(function* () {
        const receipts = yield* Producer.make("receipts")
        const orders = yield* Producer.make("orders")
        const send = spanned ? Effect.withSpan(receipts.send(1), "charge") : receipts.send(1)
        yield* Consumer.start("receipts", {}, ({ headers }) => void sent.push(headers))
        yield* Consumer.start("orders", {}, () =>
          Effect.gen(function* () {
            yield* Effect.sleep(1)
            traces.push((yield* Effect.currentParentSpan).traceId)
            yield* send
          })
        )
        yield* orders.send(1, { headers: incoming })
        yield* Effect.promise(() => until(() => sent.length > 0))
      })
      const layer = Layer.mergeAll(
        MemoryBroker.layer(),
        Layer.succeed(References.MinimumLogLevel, "None"),
        OpenTelemetry.layer({ tracerProvider: recorder.tracerProvider, propagator: withBaggage })
      )
      await Effect.runPromise(Effect.provide(Effect.scoped(program), layer))
      assert.deepStrictEqual(traces, [incoming.traceparent.slice(3, 35)])
      assert.deepStrictEqual(inherited(sent[0]!), expected)
    })
  }

  test("that are not sampled travel as such", async () => {
    await using stage = await open({}, {}, Recorder.make(new AlwaysOffSampler()))
    await stage.consume()
    await stage.requeue.send("orders", 1)
    await until(() => stage.seen.length > 0)
    assert.match(stage.seen[0]!.headers["traceparent"]!, /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/)
    assert.deepStrictEqual(stage.recorder.spans(), [])
  })

  test("of a foreign producer that sends nonsense are no context", async () => {
    await using stage = await open()
    await stage.consume()
    await stage.requeue.send("orders", 1, { headers: { traceparent: "nonsense" } })
    await until(() => stage.recorder.named("ack orders").length === 1)
    assert.strictEqual(stage.recorder.traces(), 1)
  })

  test("of whoever runs a pump do not leak into another message's run", async () => {
    await using stage = await open()
    await stage.consume()
    const tracer = stage.recorder.tracerProvider.getTracer("own")
    const foreign = { headers: { traceparent: incoming.traceparent } }
    await context.with(trace.setSpan(context.active(), tracer.startSpan("busy")), () =>
      stage.requeue.send("orders", 1, foreign)
    )
    await until(() => stage.recorder.named("ack orders").length === 1)
    const [process] = stage.recorder.named("process orders")
    assert.strictEqual(process?.spanContext().traceId, incoming.traceparent.slice(3, 35))
  })
})
