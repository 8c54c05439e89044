/** Spans of settlements. */
import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api"
import type { Broker, Delivery } from "@requeue/core"
import type { Settlement, Telemetry } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Attributes from "./attributes.ts"
import type { ConsumerMetrics } from "./metrics.ts"
import type { Instrumentation } from "./send.ts"

/** A run of a handler. */
export interface Run {
  readonly context: Context
}

interface Group {
  readonly parent: Context
  readonly settlement: Settlement.Settlement
  readonly deliveries: Array<Delivery.Delivery>
}

/** The names of settlements, in spans and metrics. */
const operations: { readonly [K in Settlement.Settlement["_tag"]]: string } = {
  Ack: "ack",
  Retry: "retry",
  DeadLetter: "dead_letter",
  Drop: "drop",
  Release: "release"
}

const attributesOf = (settlement: Settlement.Settlement) => {
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

/** Makes the hook around settlements. */
export const make = (
  { broker, now, queue }: Telemetry.About,
  {
    carrier,
    metrics,
    runOf,
    tracer
  }: Pick<Instrumentation, "carrier" | "tracer"> & {
    readonly metrics: ConsumerMetrics
    /** The last run with a delivery. */
    readonly runOf: (delivery: Delivery.Delivery) => Run | undefined
  }
): Telemetry.Watch["settle"] => {
  /** Groups deliveries of one run that are settled in the same way. A delivery that no handler saw is a group of its own. */
  const group = (requests: ReadonlyArray<Broker.SettleRequest>): ReadonlyArray<Group> => {
    const groups = new Map<Run | Delivery.Delivery, Map<string, Group>>()
    for (const { delivery, settlement } of requests) {
      const run = runOf(delivery)
      const ofRun = groups.get(run ?? delivery) ?? new Map<string, Group>()
      groups.set(run ?? delivery, ofRun)
      const way = JSON.stringify([settlement._tag, attributesOf(settlement)])
      const known = ofRun.get(way)
      const parent = run?.context ?? carrier.creation(delivery.headers) ?? ROOT_CONTEXT
      if (known === undefined) ofRun.set(way, { parent, settlement, deliveries: [delivery] })
      else known.deliveries.push(delivery)
    }
    return [...groups.values()].flatMap((ofRun) => [...ofRun.values()])
  }

  /** Starts the spans of a group, and answers the function that ends them. */
  const begin = ({ deliveries, parent, settlement }: Group, startTime: number) => {
    const name = operations[settlement._tag]
    const attributes = {
      ...Attributes.system(broker),
      [Attributes.destination]: queue,
      ...Attributes.operation(name, "settle"),
      ...Attributes.ofAll(deliveries, Attributes.delivery),
      ...attributesOf(settlement)
    }
    const options = { kind: SpanKind.CLIENT, attributes, links: [...carrier.linksTo(deliveries)], startTime }
    const span = tracer.startSpan(`${name} ${queue}`, options, parent)
    const spans = [span]
    if (settlement._tag === "DeadLetter") {
      const target = { ...Attributes.operation("send", "send"), [Attributes.destination]: settlement.queue }
      const copy = { ...options, attributes: { ...attributes, ...target } }
      spans.unshift(tracer.startSpan(`send ${settlement.queue}`, copy, trace.setSpan(parent, span)))
    }
    return (failures: ReadonlyMap<Delivery.Delivery, Broker.SettleFailure>, general: string | undefined): void => {
      const ended = now()
      const failed = deliveries.find((delivery) => failures.has(delivery))
      const error = failed === undefined ? general : failures.get(failed)!.error.reason
      for (const each of spans) {
        if (error !== undefined) each.setAttribute(Attributes.errorType, error)
        if (error !== undefined) each.setStatus({ code: SpanStatusCode.ERROR })
        each.end(ended)
      }
      metrics.settled(name, ended - startTime, error)
    }
  }

  return (requests, settle) =>
    Effect.suspend(() => {
      const started = now()
      const ends = group(requests).map((each) => begin(each, started))
      return Effect.onExit(settle, (exit) =>
        Effect.sync(() => {
          const failures = new Map(Exit.isSuccess(exit) ? exit.value.map((each) => [each.delivery, each]) : [])
          const general = Exit.isFailure(exit) ? Attributes.errorOf(exit.cause) : undefined
          for (const end of ends) end(failures, general)
        })
      )
    })
}
