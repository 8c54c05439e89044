/** Runs an adapter's operations on a target. Errors name their place in the config file. */
import { Adapters, type BrokerError, ConfigurationError, RetryPolicy } from "@requeue/core"
import { type Adapter, ConsumerOptions } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Target from "./Target.ts"

/** Makes the request for a queue's plan. */
export const requestOf = ({ name, options }: Target.Queue): Adapter.PlanRequest => ({
  queue: name,
  retry: options.retry ?? RetryPolicy.make()
})

const located =
  (place: Target.Place) =>
  <A, R>(effect: Effect.Effect<A, BrokerError.BrokerError | ConfigurationError.ConfigurationError, R>) =>
    Effect.mapError(effect, (error) =>
      error instanceof ConfigurationError.ConfigurationError ? place.locate(error) : error
    )

/** Makes a plan without a connection. */
export const plan = (place: Target.Place, request: Adapter.PlanRequest) =>
  located(place)(Effect.flatMap(Adapters.operationsOf(place.resolved), ({ plan }) => plan(request)))

/** Connects an operator, until the scope closes. */
export const open = (place: Target.Place) =>
  located(place)(
    Target.connecting(place)(Effect.flatMap(Adapters.operationsOf(place.resolved), ({ operate }) => operate))
  )

/** Fails if the broker cannot do what a queue's options require. The queue's consumers would fail in the same way. */
export const verify = (place: Target.Place, { name, options }: Target.Queue, { capabilities }: Adapter.Operator) =>
  located(place)(ConsumerOptions.verify(ConsumerOptions.resolve(options, capabilities.lease), capabilities, name))
