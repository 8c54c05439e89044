/** Spans and metrics around a publish. */
import { type Context, type Link, type Span, SpanKind, SpanStatusCode, trace, type Tracer } from "@opentelemetry/api"
import type { Outgoing, Telemetry } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Attributes from "./attributes.ts"
import * as Carrier from "./carrier.ts"
import type { Metrics } from "./metrics.ts"

/** The means by which spans and metrics are made. */
export interface Instrumentation {
  readonly tracer: Tracer
  readonly metrics: Metrics
  readonly carrier: Carrier.Carrier
}

/** One publish. */
interface Call {
  readonly broker: string
  /** In milliseconds since 1970. */
  readonly startTime: number
  /** The context of the caller. */
  readonly active: Context
}

interface Sending {
  readonly span: Span
  /** The messages, each with the context of its creation in its headers. */
  readonly messages: ReadonlyArray<Outgoing.Outgoing>
}

/** Makes the hook around publishes. */
export const make = ({ carrier, metrics, tracer }: Instrumentation): Telemetry.Service["send"] => {
  const start = (
    operation: "send" | "create",
    messages: ReadonlyArray<Outgoing.Outgoing>,
    { active, broker, startTime }: Call,
    { kind, links = [], parent = active }: { kind: SpanKind; links?: Array<Link>; parent?: Context }
  ): Span => {
    const [queue, ...others] = new Set(messages.map((message) => message.queue))
    const isOne = others.length === 0
    const attributes = {
      ...Attributes.system(broker),
      ...Attributes.operation(operation, operation),
      ...(isOne ? { [Attributes.destination]: queue! } : {}),
      ...Attributes.ofAll(messages, Attributes.outgoing)
    }
    return tracer.startSpan(isOne ? `${operation} ${queue}` : operation, { kind, attributes, links, startTime }, parent)
  }

  const created = (message: Outgoing.Outgoing, span: Span, { active }: Call): readonly [Context, Outgoing.Outgoing] => {
    const creation = trace.setSpan(active, span)
    return [creation, { ...message, headers: carrier.inject(creation, message.headers) }]
  }

  /** Creates a message by a span of its own: so each is a trace of its own where no context is active. */
  const create = (message: Outgoing.Outgoing, call: Call): readonly [Context, Outgoing.Outgoing] => {
    const span = start("create", [message], call, { kind: SpanKind.PRODUCER })
    span.end(call.startTime)
    return created(message, span, call)
  }

  /** Starts the spans. A message that carries a context already, because it is redriven or was given one, keeps it. */
  const begin = (messages: ReadonlyArray<Outgoing.Outgoing>, call: Call): Sending => {
    const known = messages.map(({ headers }) => carrier.creation(headers))
    const [only, ...others] = messages
    if (only !== undefined && others.length === 0 && known[0] === undefined) {
      const span = start("send", messages, call, { kind: SpanKind.PRODUCER })
      return { span, messages: [created(only, span, call)[1]] }
    }
    const carrying = messages.map((message, index): readonly [Context, Outgoing.Outgoing] => {
      const creation = known[index]
      return creation === undefined ? create(message, call) : [creation, message]
    })
    const links = carrying.flatMap(([creation, message]) => Carrier.linkTo(creation, Attributes.outgoing(message)))
    // A single message that is sent again outside of any context goes on with its own trace.
    const isAlone = trace.getSpanContext(call.active) === undefined && others.length === 0
    const parent = isAlone ? (known[0] ?? call.active) : call.active
    const span = start("send", messages, call, { kind: SpanKind.CLIENT, links, parent })
    return { span, messages: carrying.map(([, message]) => message) }
  }

  return (broker, messages, publish) =>
    Effect.flatMap(Effect.all([Carrier.current, Clock.Clock]), ([active, clock]) => {
      const now = () => Number(clock.currentTimeNanosUnsafe()) / 1e6
      const startTime = now()
      const sending = begin(messages, { broker, startTime, active })
      return Effect.onExit(publish(sending.messages), (exit) =>
        Effect.sync(() => {
          const ended = now()
          const failed = Exit.isFailure(exit) ? Attributes.errorOf(exit.cause) : undefined
          if (failed !== undefined) {
            sending.span.setAttribute(Attributes.errorType, failed)
            sending.span.setStatus({ code: SpanStatusCode.ERROR })
          }
          sending.span.end(ended)
          metrics.sent(broker, messages, ended - startTime, failed)
        })
      )
    })
}
