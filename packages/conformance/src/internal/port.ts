/** A subscription below the consumer, for cases that grant credit and settle themselves. */
import { type Broker, type Delivery, RetryPolicy, type Settlement } from "@requeue/core"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Lab } from "../Lab.ts"

/** An open subscription. */
export interface Port {
  readonly credit: (limit: number) => void
  /** The number of deliveries that `next` has not taken yet. */
  readonly waiting: () => number
  /** Takes the oldest delivery, as soon as there is one. */
  readonly next: Effect.Effect<Delivery.Delivery, unknown>
  readonly settle: (
    delivery: Delivery.Delivery,
    settlement: Settlement.Settlement
  ) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>
}

/** Subscribes to the laboratory's queue until the scope closes, and grants credit for so many deliveries. */
export const open = (lab: Lab, credit: number): Effect.Effect<Port, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const inbox: Array<Delivery.Delivery> = []
    const subscription = yield* lab.broker.subscribe({
      queue: lab.queue,
      retry: RetryPolicy.make(),
      deadLetterQueues: [lab.dlq],
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
