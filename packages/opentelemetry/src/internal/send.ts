/** Spans and metrics around a publish. */
import { type Context, type Link, type Span, SpanKind, SpanStatusCode, trace, type Tracer } from "@opentelemetry/api"
import type { BrokerError } from "@requeue/core/BrokerError"
import type { Outgoing } from "@requeue/core/Outgoing"
import type * as Telemetry from "@requeue/core/Telemetry"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Attributes from "./attributes.ts"
import * as Carrier from "./carrier.ts"
import type { Metrics } from "./metrics.ts"

export interface Environment {
  readonly tracer: Tracer
  readonly metrics: Metrics
  readonly carrier: Carrier.Carrier
}

interface Sending {
  readonly span: Span
  /** The messages, each with the context that it is created in. */
  readonly messages: ReadonlyArray<Outgoing>
}

const queuesOf = (messages: ReadonlyArray<Outgoing>) => [...new Set(messages.map(({ queue }) => queue))]

/** Why a publish failed. */
const errorType = (cause: Cause.Cause<BrokerError>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => (Cause.hasInterruptsOnly(cause) ? "interrupted" : "_OTHER"),
    onSome: ({ reason }) => reason
  })

export const make = ({ carrier, metrics, tracer }: Environment): Telemetry.Service["send"] => {
  const start = (
    [name, type]: readonly [string, string],
    kind: SpanKind,
    broker: string,
    messages: ReadonlyArray<Outgoing>,
    links: ReadonlyArray<Link>,
    startTime: number,
    parent: Context
  ): Span => {
    const [queue, ...others] = queuesOf(messages)
    const attributes = {
      ...Attributes.system(broker),
      ...Attributes.operation(name, type),
      ...(others.length === 0 ? { [Attributes.destination]: queue! } : {}),
      ...Attributes.ofAll(messages, Attributes.outgoing)
    }
    const spanName = others.length === 0 ? `${name} ${queue}` : name
    return tracer.startSpan(spanName, { kind, attributes, links: [...links], startTime }, parent)
  }

  /** A message that is created here is created by the span that sends it, if it is the only one. */
  const beginNew = (broker: string, message: Outgoing, now: number, parent: Context): Sending => {
    const span = start(["send", "send"], SpanKind.PRODUCER, broker, [message], [], now, parent)
    return { span, messages: [{ ...message, headers: carrier.inject(trace.setSpan(parent, span), message.headers) }] }
  }

  /** Each message is to be a trace of its own where nothing is active: so each is created by a span of its own. */
  const create = (broker: string, message: Outgoing, now: number, parent: Context): [Context, Outgoing] => {
    const span = start(["create", "create"], SpanKind.PRODUCER, broker, [message], [], now, parent)
    span.end(now)
    const creation = trace.setSpan(parent, span)
    return [creation, { ...message, headers: carrier.inject(creation, message.headers) }]
  }

  /** A message that carries a context already, because it is redriven or was given one, keeps it. */
  const begin = (broker: string, messages: ReadonlyArray<Outgoing>, now: number, active: Context): Sending => {
    const known = messages.map(({ headers }) => carrier.creation(headers))
    const [only, ...others] = messages
    if (only !== undefined && others.length === 0 && known[0] === undefined) return beginNew(broker, only, now, active)
    const created = messages.map((message, index): [Context, Outgoing] => {
      const creation = known[index]
      return creation === undefined ? create(broker, message, now, active) : [creation, message]
    })
    const links = created.flatMap(([creation, message]) => Carrier.linkTo(creation, Attributes.outgoing(message)))
    // A single one that is sent again by nobody in particular goes on with its trace.
    const parent = trace.getSpanContext(active) === undefined && others.length === 0 ? (known[0] ?? active) : active
    const span = start(["send", "send"], SpanKind.CLIENT, broker, messages, links, now, parent)
    return { span, messages: created.map(([, message]) => message) }
  }

  return (broker, messages, publish) =>
    Effect.flatMap(Effect.all([Carrier.current, Clock.Clock]), ([parent, clock]) => {
      const now = () => Number(clock.currentTimeNanosUnsafe()) / 1e6
      const started = now()
      const sending = begin(broker, messages, started, parent)
      return Effect.onExit(publish(sending.messages), (exit) =>
        Effect.sync(() => {
          const ended = now()
          const failed = Exit.isFailure(exit) ? errorType(exit.cause) : undefined
          if (failed !== undefined) {
            sending.span.setAttribute(Attributes.errorType, failed)
            sending.span.setStatus({ code: SpanStatusCode.ERROR })
          }
          sending.span.end(ended)
          metrics.sent(broker, messages, ended - started, failed)
        })
      )
    })
}
