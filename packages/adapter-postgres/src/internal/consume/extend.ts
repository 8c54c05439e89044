/** Renews leases. If a lease could not be renewed, the next call tries again. */
import { Broker, type Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Store } from "../connect/store.ts"
import { type Changes, problemOf } from "../settle/changes.ts"
import { receiptOf } from "./receipt.ts"

/** Renews the leases of deliveries, and returns those that it could not renew. */
export const extend = (
  deliveries: ReadonlyArray<Delivery.Delivery>,
  queue: string,
  { settings, timers }: Store,
  changes: Changes
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> => {
  const context = { operation: "extend", queue }
  const one = (delivery: Delivery.Delivery) =>
    Effect.callback<ReadonlyArray<Broker.SettleFailure>>((resume) => {
      const receipt = receiptOf(delivery)
      const until = timers.now() + settings.lease
      changes.extend(receipt, 1, context, (error, outcome) => {
        if (typeof outcome === "number") receipt.until = until
        // The repeated settlement finds out whether the message is lost.
        const problem = error ?? (receipt.isUncertain ? undefined : problemOf(outcome, context))
        resume(
          Effect.succeed(problem === undefined ? [] : [{ delivery, error: problem, fate: Broker.fateOf(problem) }])
        )
      })
    })
  return Effect.map(Effect.forEach(deliveries, one, { concurrency: "unbounded" }), (all) => all.flat())
}
