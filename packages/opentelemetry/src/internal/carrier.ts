/** Carries context in the headers of messages, and from span to span. */
import {
  type Context,
  context,
  type Link,
  ROOT_CONTEXT,
  type TextMapPropagator,
  trace,
  TraceFlags
} from "@opentelemetry/api"
import type { Delivery, Message } from "@requeue/core"
import * as EffectContext from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import * as Attributes from "./attributes.ts"

export interface Carrier {
  /** The context that a message was created in; `undefined` of one that carries none. */
  readonly creation: (headers: Message.Headers) => Context | undefined
  /** Links to the contexts that messages were created in. */
  readonly linksTo: (deliveries: ReadonlyArray<Delivery.Delivery>) => ReadonlyArray<Link>
  /** The headers with a context in them. */
  readonly inject: (created: Context, headers: Message.Headers) => Message.Headers
}

export const make = (propagator: TextMapPropagator): Carrier => {
  const creation: Carrier["creation"] = (headers) => {
    const found = propagator.extract(ROOT_CONTEXT, headers, {
      get: (carrier: Message.Headers, key) => carrier[key],
      keys: (carrier: Message.Headers) => Object.keys(carrier)
    })
    return trace.getSpanContext(found) === undefined ? undefined : found
  }
  return {
    creation,
    linksTo: (deliveries) =>
      deliveries.flatMap((delivery) => linkTo(creation(delivery.headers), Attributes.delivery(delivery))),
    inject: (created, headers) => {
      const copy: Record<string, string> = { ...headers }
      propagator.inject(created, copy, { set: (carrier, key, value) => void (carrier[key] = value) })
      return copy
    }
  }
}

/** A link to the span of a context; none to a context without a span. */
export const linkTo = (from: Context | undefined, attributes: Link["attributes"] = {}): ReadonlyArray<Link> => {
  const spanContext = from && trace.getSpanContext(from)
  return spanContext === undefined ? [] : [{ context: spanContext, attributes }]
}

/**
 * What an Effect runs in. OpenTelemetry's own active context follows promises; it is lost, or another fiber's, where
 * fibers are resumed.
 */
const Current = EffectContext.Reference<Context | undefined>("@requeue/opentelemetry/Current", {
  defaultValue: () => undefined
})

/** What the handler does belongs to the context, be it a promise's work or an Effect's. */
export const within = <A>(inner: Context, handler: () => A): A => {
  const result = context.with(inner, handler)
  const span = trace.getSpanContext(inner)
  if (!Effect.isEffect(result) || span === undefined) return result
  const { spanId, traceFlags, traceId } = span
  const sampled = (traceFlags & TraceFlags.SAMPLED) !== 0
  return (result as Effect.Effect<unknown, unknown>).pipe(
    Effect.withParentSpan(Tracer.externalSpan({ spanId, traceId, sampled })),
    Effect.provideService(Current, inner)
  ) as A
}

/** The context of whoever runs this: an Effect's span, else what OpenTelemetry has active. */
export const current: Effect.Effect<Context> = Effect.gen(function* () {
  const base = (yield* Current) ?? context.active()
  const span = Option.getOrUndefined(yield* Effect.serviceOption(Tracer.ParentSpan))
  const known = trace.getSpanContext(base)
  if (span === undefined || span.spanId === known?.spanId) return base
  const { sampled, spanId, traceId } = span
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE
  const state = known?.traceId === traceId ? known.traceState : undefined
  const found = { spanId, traceId, traceFlags, ...(state && { traceState: state }) }
  return trace.setSpanContext(base, found)
})
