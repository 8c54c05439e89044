/** A consumer's subscription: deliveries under its credit, and their settlements. */
import { type Broker, type BrokerError, Trouble } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { declare } from "../connect/declare.ts"
import type { Store } from "../connect/store.ts"
import * as AckWithin from "../settle/ackWithin.ts"
import type { Changes } from "../settle/changes.ts"
import * as Settle from "../settle/settle.ts"
import * as Consumer from "./consumer.ts"
import { extend } from "./extend.ts"
import { identify, receiptOf } from "./receipt.ts"

/** Returns the messages of a consumer to the queue. After an error, the leases end. */
const giveBack = ({ held }: Consumer.Consumer, queue: string, { wake }: Store, changes: Changes): Effect.Effect<void> =>
  Effect.forEach(
    [...held],
    (receipt) =>
      Effect.callback<void>((resume) => {
        const item = { ...receipt, uncounted: receipt.isSeen ? (0 as const) : (1 as const) }
        changes.giveBack(item, 1, { operation: "unsubscribe", queue }, (_, outcome) => {
          held.delete(receipt)
          if (typeof outcome === "number") wake(queue, outcome)
          resume(Effect.void)
        })
      }),
    { concurrency: "unbounded", discard: true }
  )

/** Delivers until the scope closes, which returns all unsettled messages. */
export const subscribe = (
  { deadLetterQueues, onDelivery, queue, shareLimits }: Broker.SubscribeOptions,
  store: Store,
  changes: Changes
): Effect.Effect<Broker.Subscription, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    yield* declare([queue, ...deadLetterQueues], { operation: "subscribe", queue }, store)
    store.serve()
    const run = Effect.runForkWith(yield* Effect.context())
    const trouble = Trouble.track(queue, store.now)
    const onOutcome = (error: BrokerError.BrokerError | undefined): void => {
      if (error !== undefined) run(trouble.tell(error))
      else if (trouble.current() !== undefined) run(trouble.over)
    }
    const consumer = yield* Effect.acquireRelease(
      Effect.sync(() => Consumer.make({ queue, shareLimits, store, onDelivery, onOutcome })),
      (made) =>
        Effect.andThen(
          Effect.callback<void>((resume) => made.close(() => resume(Effect.void))),
          Effect.suspend(() => giveBack(made, queue, store, changes))
        )
    )
    return {
      credit: consumer.credit,
      settle: Settle.make(consumer, queue, store, changes),
      ackWithin: AckWithin.make(queue, store),
      extend: (deliveries) =>
        Effect.map(extend(deliveries, queue, store, changes), (failures) => {
          for (const { delivery, fate } of failures) if (fate === "lost") consumer.held.delete(receiptOf(delivery))
          consumer.refill()
          return failures
        }),
      identify,
      trouble: trouble.current
    }
  })
