/**
 * A third-party adapter, in a separate package. Its broker is the memory broker with an order and a dead letter in it, which
 * gives every command something to show. `acme://down` cannot be reached, and on `acme://empty` there is no queue.
 */
import { MemoryBroker } from "@requeue/adapter-memory"
import {
  type Adapter,
  Broker,
  BrokerError,
  type ConfigurationError,
  Metadata,
  OptionKind,
  Outgoing,
  Plan,
  RetryPolicy
} from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

export interface Options {
  readonly url: URL
  /** The id of the order. Default: `order-1`. */
  readonly order?: string
}

const decode = AdapterOptions.decoder("acme", { order: OptionKind.nonEmpty })

const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))

const stock = (id: string): ReadonlyArray<Outgoing.Outgoing> => {
  const now = Date.now()
  const letter = {
    body: bytes(2),
    headers: {},
    attempts: 1,
    metadata: Metadata.make("letter-1", now),
    receipt: undefined
  }
  const error = { name: "Error", message: "never" }
  return [
    Outgoing.make({ queue: "orders", id, body: bytes(1), headers: {}, delay: 0 }, now),
    Outgoing.deadLetter(letter, { _tag: "DeadLetter", reason: "permanent", queue: "orders.dlq", error }, "orders", now)
  ]
}

export const make = ({
  order,
  url
}: Options): Effect.Effect<
  Broker.Service,
  BrokerError.BrokerError | ConfigurationError.ConfigurationError,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const settings = yield* Effect.fromResult(decode(Object.fromEntries(url.searchParams), { order }))
    if (url.host === "down") {
      return yield* new BrokerError.BrokerError({
        broker: "acme",
        operation: "connect",
        reason: "ConnectionFailed",
        detail: "nobody listens"
      })
    }
    const broker = yield* MemoryBroker.make()
    yield* broker.publish(stock(settings.order ?? "order-1"))
    return broker
  })

const toPlan = ({ queue, retry }: Adapter.PlanRequest): Plan.Plan => ({
  broker: "acme",
  queue,
  delays: "timers",
  objects: [queue, ...RetryPolicy.deadLetterQueues(retry, queue)].map((name) => ({ kind: "queue", name, details: "" })),
  flows: [...Plan.retries(queue, retry), ...Plan.deadLetters(queue, retry)],
  notes: []
})

export const adapter: Adapter.Adapter = {
  schemes: ["acme"],
  layer: (url, options) => Layer.effect(Broker.Broker, make({ ...options, url })),
  operations: {
    plan: (request) => Effect.succeed(toPlan(request)),
    operate: (url, options) =>
      Effect.map(make({ ...options, url }), ({ capabilities }) => ({
        capabilities,
        plan: (request) => Effect.succeed(toPlan(request)),
        inspect: (request) =>
          Effect.succeed({
            objects: toPlan(request).objects.map((object) => ({
              ...object,
              state: url.host === "empty" ? "missing" : "present"
            })),
            findings: []
          }),
        create: () => Effect.void
      }))
  }
}
