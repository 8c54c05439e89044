/**
 * Traces and metrics of Requeue by OpenTelemetry's conventions for messaging.
 *
 * When to use: pass the result of {@link make} to `connect` as the option `telemetry`, or provide the {@link layer} next to
 * the broker's layer. Without it, Requeue makes no spans and no metrics, and they cost nothing.
 *
 * One message is one trace, over all its attempts, its dead letter and its redrives. The context in which it was created
 * travels in its headers (`traceparent` and `tracestate`, https://www.w3.org/TR/trace-context/). All its copies keep that
 * context, and every run of its handler is a child of it. A run with several messages cannot be a child of all, so it
 * begins a new trace with a link to each.
 *
 * Names of spans and attributes: https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/
 */
import { type MeterProvider, type TextMapPropagator, trace, type TracerProvider } from "@opentelemetry/api"
import { W3CTraceContextPropagator } from "@opentelemetry/core"
import { OptionKind, OptionNames, Telemetry } from "@requeue/core/port"
import * as Layer from "effect/Layer"
import * as Carrier from "./internal/carrier.ts"
import * as Gauges from "./internal/gauges.ts"
import * as Late from "./internal/late.ts"
import * as Metrics from "./internal/metrics.ts"
import * as Send from "./internal/send.ts"
import * as Watch from "./internal/watch.ts"

/** The parts of OpenTelemetry to use. */
export interface Options {
  /** Receives the spans. Default: the globally registered provider, also if it is registered later. */
  readonly tracerProvider?: TracerProvider | undefined
  /** Receives the metrics. Default: the globally registered provider, also if it is registered later. */
  readonly meterProvider?: MeterProvider | undefined
  /**
   * Writes trace contexts into headers, and reads them. Default: W3C trace context. To carry baggage as well, give a
   * `CompositePropagator` of `@opentelemetry/core`.
   */
  readonly propagator?: TextMapPropagator | undefined
}

const kinds: OptionNames.Of<Options> = {
  tracerProvider: OptionKind.object("a TracerProvider, such as that of NodeTracerProvider", "getTracer"),
  meterProvider: OptionKind.object("a MeterProvider of @opentelemetry/sdk-metrics", "getMeter"),
  propagator: OptionKind.object("a propagator, such as a CompositePropagator", "inject", "extract")
}

/** The name of the instrumentation scope. */
const scope = "@requeue/opentelemetry"

/**
 * Makes the telemetry for `connect`, or for the reference `Telemetry.Telemetry`.
 *
 * Call it once. If the program registers its global meter provider later, metrics begin with the next message of each
 * consumer and the next send.
 *
 * @throws RangeError when an option is unknown or of the wrong kind
 *
 * @example
 * ```ts
 * import { InMemorySpanExporter, SimpleSpanProcessor, BasicTracerProvider } from "@opentelemetry/sdk-trace-base"
 * import { connect } from "@requeue/core/promise"
 * import { OpenTelemetry } from "@requeue/opentelemetry"
 *
 * const exporter = new InMemorySpanExporter()
 * const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
 *
 * await using requeue = await connect("memory:", { telemetry: OpenTelemetry.make({ tracerProvider }) })
 * await requeue.send("orders", { id: 7 })
 * exporter.getFinishedSpans().map(({ name }) => name) // => ["send orders"]
 * ```
 */
export const make = (options: Options = {}): Telemetry.Service => {
  OptionNames.check("OpenTelemetry.make", options, kinds)
  const { propagator = new W3CTraceContextPropagator(), tracerProvider = trace.getTracerProvider() } = options
  const tracer = tracerProvider.getTracer(scope)
  const carrier = Carrier.make(propagator)
  return Late.make(options.meterProvider, scope, (meter) => {
    const env = { tracer, metrics: Metrics.make(meter), carrier }
    const gauges = Gauges.make(meter)
    return {
      send: Send.make(env),
      consumer: (about) => Watch.make(about, { ...env, gauges })
    }
  })
}

/**
 * Makes the layer of the telemetry, for programs with Effect: provide it to producers, consumers and redrives.
 *
 * A misspelt option is a defect when the layer is built. Spans of `Effect.withSpan` in a handler are children of the
 * handler's run if Effect's own tracer writes to OpenTelemetry as well, for example by `@effect/opentelemetry`.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Producer } from "@requeue/core"
 * import { OpenTelemetry } from "@requeue/opentelemetry"
 * import { Effect, Layer } from "effect"
 *
 * const program = Effect.flatMap(Producer.make("orders"), ({ send }) => send({ id: 7 }))
 *
 * await Effect.runPromise(Effect.provide(program, Layer.merge(MemoryBroker.layer(), OpenTelemetry.layer())))
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<never> => Layer.sync(Telemetry.Telemetry, () => make(options))
