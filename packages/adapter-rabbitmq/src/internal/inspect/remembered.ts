/** Caches plans of queues, and makes a plan again when its inputs have changed. */
import type { BrokerError, RetryPolicy } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"

type Make = (request: RabbitMqPlan.Request) => Effect.Effect<RabbitMqPlan.Plan, BrokerError.BrokerError>

/** A plan, and its inputs besides queue and policy. */
interface Made {
  readonly found: RabbitMqQueue | undefined
  readonly version: string
  readonly plan: RabbitMqPlan.Plan
}

/** Remembers a plan while its policy exists. `found` returns what a queue is, if known. */
export const make = (
  plan: Make,
  found: (queue: string) => RabbitMqQueue | undefined,
  serverVersion: () => string
): Make => {
  const all = new WeakMap<RetryPolicy.RetryPolicy, Map<string, Made>>()
  return (request) =>
    Effect.suspend(() => {
      const from = { found: found(request.queue), version: serverVersion() }
      const fresh = Effect.suspend(() => plan({ ...request, found: from.found }))
      if (request.retry === undefined) return fresh
      const own = all.get(request.retry) ?? new Map<string, Made>()
      all.set(request.retry, own)
      const made = own.get(request.queue)
      if (made !== undefined && made.found === from.found && made.version === from.version)
        return Effect.succeed(made.plan)
      return Effect.tap(fresh, (plan) => Effect.sync(() => own.set(request.queue, { ...from, plan })))
    })
}
