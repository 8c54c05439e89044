/** Carries trace contexts in the headers of messages, and from span to span. */
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

/** Reads and writes contexts in headers. */
export interface Carrier {
  /** Reads the context in which a message was created; `undefined` if the message carries none. */
  readonly creation: (headers: Message.Headers) => Context | undefined
  /** Makes links to the contexts in which messages were created. */
  readonly linksTo: (deliveries: ReadonlyArray<Delivery.Delivery>) => ReadonlyArray<Link>
  /** Makes headers that contain a context. */
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

/** Makes a link to the span of a context; none if the context has no span. */
export const linkTo = (from: Context | undefined, attributes: Link["attributes"] = {}): ReadonlyArray<Link> => {
  const spanContext = from && trace.getSpanContext(from)
  return spanContext === undefined ? [] : [{ context: spanContext, attributes }]
}

/**
 * The context of an Effect. OpenTelemetry's own active context follows promises. In a resumed fiber that context is lost,
 * or belongs to another fiber.
 */
const Current = EffectContext.Reference<Context | undefined>("@requeue/opentelemetry/Current", {
  defaultValue: () => undefined
})

/** Runs a handler in a context. The context holds for the handler's promise, and for its Effect. */
export const within = <A>(inner: Context, handler: () => A): A => {
  const result = context.with(inner, handler)
  const span = trace.getSpanContext(inner)
  if (!Effect.isEffect(result) || span === undefined) return result
  const { spanId, traceFlags, traceId } = span
  const sampled = (traceFlags & TraceFlags.SAMPLED) !== 0
  const traced = Effect.withParentSpan(result, Tracer.externalSpan({ spanId, traceId, sampled }))
  return Effect.provideService(traced, Current, inner) as A // the handler's Effect, with references added
}

/** Returns the context of the running fiber: that of its span, else OpenTelemetry's active context. */
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
