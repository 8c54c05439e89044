/** A subscription in a case's own hands, below the consumer. */
import { type Broker, type Delivery, RetryPolicy, type Settlement } from "@requeue/core"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Lab } from "../Lab.ts"

export interface Port {
  readonly credit: (limit: number) => void
  /** Deliveries that nobody has taken yet. */
  readonly waiting: () => number
  readonly next: Effect.Effect<Delivery.Delivery, unknown>
  readonly settle: (
    delivery: Delivery.Delivery,
    settlement: Settlement.Settlement
  ) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>
}

/** Subscribes to the laboratory's queue, with a credit. */
export const open = (lab: Lab, credit: number): Effect.Effect<Port, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const inbox: Array<Delivery.Delivery> = []
    const subscription = yield* lab.broker.subscribe({
      queue: lab.queue,
      retry: RetryPolicy.make(),
      deadLetterQueues: [lab.dlq],
      maxCredit: 10,
      onDelivery: (delivery) => void inbox.push(delivery),
      onReconnect: () => {}
    })
    subscription.credit(credit)
    return {
      credit: subscription.credit,
      waiting: () => inbox.length,
      next: Effect.map(
        lab.until("a delivery", () => inbox.length > 0),
        () => inbox.shift()!
      ),
      settle: (delivery, settlement) => subscription.settle([{ delivery, settlement }])
    }
  })
