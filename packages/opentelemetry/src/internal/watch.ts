/** Spans of a consumer: a handler's runs, and settlements. */
import { type Context, type Link, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api"
import type { SettleFailure, SettleRequest } from "@requeue/core/Broker"
import type { Delivery } from "@requeue/core/Delivery"
import type { Settlement } from "@requeue/core/Settlement"
import type * as Telemetry from "@requeue/core/Telemetry"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Attributes from "./attributes.ts"
import * as Carrier from "./carrier.ts"
import type { Gauges } from "./gauges.ts"
import type { Environment } from "./send.ts"

/** What settlements are called, in spans and metrics. */
const operations: { readonly [K in Settlement["_tag"]]: string } = {
  Ack: "ack",
  Retry: "retry",
  DeadLetter: "dead_letter",
  Drop: "drop",
  Release: "release"
}

const settlementAttributes = (settlement: Settlement) => {
  switch (settlement._tag) {
    case "Retry":
      return { [Attributes.delay]: settlement.delay / 1000 }
    case "DeadLetter":
      return { [Attributes.reason]: settlement.reason, [Attributes.target]: settlement.queue }
    case "Drop":
      return { [Attributes.reason]: settlement.reason }
    default:
      return {}
  }
}

export const make = (
  about: Telemetry.About,
  { carrier, gauges, metrics, tracer }: Environment & { readonly gauges: Gauges }
): Telemetry.Watch => {
  const { now, queue } = about
  const fixed = { ...Attributes.system(about.broker), [Attributes.destination]: queue }
  const consumer = metrics.consumer(about)
  const close = gauges.add(about)
  /** The run that a delivery was last handled in. */
  const runs = new WeakMap<Delivery, Context>()

  const linksTo = (deliveries: ReadonlyArray<Delivery>): Array<Link> =>
    deliveries.flatMap((delivery) => Carrier.linkTo(carrier.creation(delivery.headers), Attributes.delivery(delivery)))

  /** One message's run belongs to its trace; a run of several can be a child of none of them. */
  const run = (deliveries: ReadonlyArray<Delivery>, rerun: number): Telemetry.Run => {
    const [only, ...others] = deliveries
    const creation = others.length === 0 ? carrier.creation(only!.headers) : undefined
    const parent = creation ?? ROOT_CONTEXT
    const started = now()
    const attributes = {
      ...fixed,
      ...Attributes.operation("process", "process"),
      ...Attributes.ofAll(deliveries, Attributes.delivery),
      ...(rerun === 0 ? {} : { [Attributes.rerun]: rerun })
    }
    const options = { kind: SpanKind.CONSUMER, attributes, links: linksTo(deliveries), startTime: started }
    const span = tracer.startSpan(`process ${queue}`, options, parent)
    const inner = trace.setSpan(parent, span)
    for (const delivery of deliveries) runs.set(delivery, inner)
    return {
      within: (handler) => Carrier.within(inner, handler),
      end: (ending) => {
        const ended = now()
        if (ending._tag === "Failed") {
          span.setAttribute(Attributes.errorType, ending.error.name)
          span.recordException(ending.error, ended)
          span.setStatus({ code: SpanStatusCode.ERROR, message: ending.error.message })
        }
        span.end(ended)
        consumer.processed(ended - started, ending)
      }
    }
  }

  interface Group {
    readonly parent: Context
    readonly settlement: Settlement
    readonly deliveries: Array<Delivery>
  }

  /** What came out of one run and becomes of it the same way is one settlement; what no handler saw stands alone. */
  const group = (requests: ReadonlyArray<SettleRequest>): Iterable<Group> => {
    const groups = new Map<unknown, Group>()
    for (const { delivery, settlement } of requests) {
      const inner = runs.get(delivery)
      const way = Object.values({ ...settlement, error: undefined }).join(" ")
      const key = inner === undefined ? delivery : `${trace.getSpanContext(inner)?.spanId} ${way}`
      const known = groups.get(key)
      if (known !== undefined) known.deliveries.push(delivery)
      else {
        const parent = inner ?? carrier.creation(delivery.headers) ?? ROOT_CONTEXT
        groups.set(key, { parent, settlement, deliveries: [delivery] })
      }
    }
    return groups.values()
  }

  /** Starts the spans of a group; answers what ends them. */
  const begin = ({ deliveries, parent, settlement }: Group, started: number) => {
    const name = operations[settlement._tag]
    const attributes = {
      ...fixed,
      ...Attributes.operation(name, "settle"),
      ...Attributes.ofAll(deliveries, Attributes.delivery),
      ...settlementAttributes(settlement)
    }
    const options = { kind: SpanKind.CLIENT, attributes, links: linksTo(deliveries), startTime: started }
    const span = tracer.startSpan(`${name} ${queue}`, options, parent)
    const spans = [span]
    if (settlement._tag === "DeadLetter") {
      const sent = {
        ...attributes,
        ...Attributes.operation("send", "send"),
        [Attributes.destination]: settlement.queue
      }
      const inner = trace.setSpan(parent, span)
      spans.push(tracer.startSpan(`send ${settlement.queue}`, { ...options, attributes: sent }, inner))
    }
    return (failures: ReadonlyMap<Delivery, SettleFailure>, cutOff: boolean): void => {
      const ended = now()
      const failed = deliveries.find((delivery) => failures.has(delivery))
      const error = failed === undefined ? (cutOff ? "interrupted" : undefined) : failures.get(failed)!.error.reason
      for (const each of spans.toReversed()) {
        if (error !== undefined)
          each.setAttribute(Attributes.errorType, error).setStatus({ code: SpanStatusCode.ERROR })
        each.end(ended)
      }
      consumer.settled(name, ended - started, error)
    }
  }

  return {
    onEvent: consumer.onEvent,
    run,
    settle: (requests, settle) =>
      Effect.suspend(() => {
        const started = now()
        const ends = Array.from(group(requests), (each) => begin(each, started))
        return Effect.onExit(settle, (exit) =>
          Effect.sync(() => {
            const failures = new Map(Exit.isSuccess(exit) ? exit.value.map((each) => [each.delivery, each]) : [])
            for (const end of ends) end(failures, Exit.isFailure(exit))
          })
        )
      }),
    close
  }
}
