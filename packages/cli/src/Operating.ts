/** An adapter's operations on a target. Errors name their place in the config file. */
import { type Adapter, type BrokerError, ConfigurationError, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Target from "./Target.ts"
import { UsageError } from "./UsageError.ts"

/** Makes the request for a queue's plan. */
export const requestOf = ({ name, options }: Target.Queue): Adapter.PlanRequest => ({
  queue: name,
  retry: options.retry ?? RetryPolicy.make()
})

const operationsOf = ({ resolved: { adapter, scheme } }: Target.Place): Effect.Effect<Adapter.Operations, UsageError> =>
  adapter.operations === undefined
    ? Effect.fail(new UsageError({ detail: `the adapter of ${scheme}: has no operations`, remedy: "Use a newer one" }))
    : Effect.succeed(adapter.operations)

const located =
  (place: Target.Place) =>
  <A, R>(effect: Effect.Effect<A, BrokerError.BrokerError | ConfigurationError.ConfigurationError, R>) =>
    Effect.mapError(effect, (error) =>
      error instanceof ConfigurationError.ConfigurationError ? place.locate(error) : error
    )

/** Makes a plan without a connection. */
export const plan = (place: Target.Place, request: Adapter.PlanRequest) =>
  Effect.flatMap(operationsOf(place), (operations) => {
    const { options, url } = Redacted.value(place.resolved.address)
    return located(place)(operations.plan(request, url, options))
  })

/** Connects an operator, until the scope closes. */
export const open = (place: Target.Place) =>
  Effect.flatMap(operationsOf(place), (operations) => {
    const { options, url } = Redacted.value(place.resolved.address)
    return located(place)(operations.operate(url, options))
  })
