/** Spans of a consumer: a handler's runs, and settlements. */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api"
import type { Delivery } from "@requeue/core"
import type { Metadata, Telemetry } from "@requeue/core/port"
import * as Attributes from "./attributes.ts"
import * as Carrier from "./carrier.ts"
import type { Gauges } from "./gauges.ts"
import type { Instrumentation } from "./send.ts"
import * as Settlements from "./settlements.ts"

/**
 * The error with its stack in JavaScript's format, for `exception.stacktrace`.
 *
 * https://opentelemetry.io/docs/specs/semconv/exceptions/exceptions-spans/
 */
const exceptionOf = ({ message, name, stack }: Metadata.ErrorSummary) =>
  stack === undefined ? { name, message } : { name, message, stack: `${name}: ${message}\n${stack}` }

/** Makes the hooks of one consumer. */
export const make = (
  about: Telemetry.About,
  { carrier, gauges, metrics, tracer }: Instrumentation & { readonly gauges: Gauges }
): Telemetry.Watch => {
  const { broker, now, queue } = about
  const consumer = metrics.consumer(about)
  const close = gauges.add(about)
  const runs = new WeakMap<Delivery.Delivery, Settlements.Run>()

  /** Starts the span of a run. With one message it belongs to the message's trace; with several it begins a trace. */
  const run = (deliveries: ReadonlyArray<Delivery.Delivery>, rerun: number): Telemetry.Run => {
    const [only, ...others] = deliveries
    const creation = others.length === 0 ? carrier.creation(only!.headers) : undefined
    const parent = creation ?? ROOT_CONTEXT
    const startTime = now()
    const attributes = {
      ...Attributes.system(broker),
      [Attributes.destination]: queue,
      ...Attributes.operation("process", "process"),
      ...Attributes.ofAll(deliveries, Attributes.delivery),
      ...(rerun === 0 ? {} : { [Attributes.rerun]: rerun })
    }
    const options = { kind: SpanKind.CONSUMER, attributes, links: [...carrier.linksTo(deliveries)], startTime }
    const span = tracer.startSpan(`process ${queue}`, options, parent)
    const context = trace.setSpan(parent, span)
    const self: Settlements.Run = { context }
    for (const delivery of deliveries) {
      runs.set(delivery, self)
      if (rerun === 0) consumer.begun(delivery, startTime)
    }
    return {
      within: (handler) => Carrier.within(context, handler),
      end: (ending) => {
        const ended = now()
        if (ending._tag === "Failed") {
          span.setAttribute(Attributes.errorType, ending.error.name)
          // A stack is formatted when it is read: not for a span that is not sampled.
          if (span.isRecording()) span.recordException(exceptionOf(ending.error), ended)
          span.setStatus({ code: SpanStatusCode.ERROR, message: ending.error.message })
        }
        span.end(ended)
        consumer.processed(ended - startTime, ending)
      }
    }
  }

  const settle = Settlements.make(about, {
    carrier,
    tracer,
    metrics: consumer,
    runOf: (delivery) => runs.get(delivery)
  })
  return { onEvent: consumer.onEvent, run, settle, close }
}
