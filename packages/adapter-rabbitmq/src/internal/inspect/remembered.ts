/** Plans of queues that somebody asks about again and again: each is made anew when what it is made from has changed. */
import type { BrokerError, RetryPolicy } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"

type Make = (request: RabbitMqPlan.Request) => Effect.Effect<RabbitMqPlan.Plan, BrokerError.BrokerError>

/** A plan, and what it was made from beside its queue and policy. */
interface Made {
  readonly found: RabbitMqQueue | undefined
  readonly version: string
  readonly plan: RabbitMqPlan.Plan
}

/** Remembers a plan for as long as its policy lives. `found` tells what a queue is, where that was found out. */
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
