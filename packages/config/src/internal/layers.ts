/** Layers of the brokers of a file. */
import { type Adapters, Broker, RetryPolicy } from "@requeue/core"
import { type Adapter, KnownQueues } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { ConfigFileError } from "../ConfigFileError.ts"
import type { ConfiguredQueue } from "../ConfiguredQueue.ts"
import type * as StrictSchema from "../StrictSchema.ts"
import * as BrokerProblems from "./brokerProblems.ts"
import * as Named from "./named.ts"

const requestOf = ({ name, options: { retry = RetryPolicy.make() } }: ConfiguredQueue): Adapter.PlanRequest => ({
  queue: name,
  retry
})

/** Returns the connected broker with its name in the file. Fails if it cannot do what one of its queues demands. */
export const verified = (
  name: string,
  queues: ReadonlyArray<readonly [string, ConfiguredQueue]>,
  { adapter, address }: Adapters.Resolved,
  refused: (broker: string, problems: ReadonlyArray<StrictSchema.Problem>) => ConfigFileError
) =>
  Effect.gen(function* () {
    const broker = Named.service(name, yield* Broker.Broker)
    const problems = queues.flatMap(([key, queue]) => BrokerProblems.impossible(name, key, queue, broker.capabilities))
    if (problems.length > 0) return yield* refused(name, problems)
    for (const [, queue] of queues) KnownQueues.add(broker, queue.name, queue.options.retry ?? RetryPolicy.make())
    const { options, url } = Redacted.value(address)
    // Limits of some queues only, such as FIFO queues, are not among the broker's capabilities.
    for (const [, queue] of queues) yield* adapter.operations?.plan(requestOf(queue), url, options) ?? Effect.void
    return broker
  })

/** Changes the error of building a layer. */
export const mapError =
  <E, E2>(map: (error: E) => E2) =>
  (layer: Layer.Layer<Broker.Broker, E>): Layer.Layer<Broker.Broker, E2> =>
    layer.pipe(Layer.catch((error) => Layer.effect(Broker.Broker, Effect.fail(map(error)))))
