/** Browsers. Ready messages that were shown are leased, uncounted; delayed ones stay in the queue. */
import type { Broker, BrokerError, Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Store } from "../connect/store.ts"
import { identify, receiptOf } from "../consume/receipt.ts"
import type { Changes } from "../settle/changes.ts"
import { leaseLost } from "../toBrokerError.ts"
import { delayed } from "./browseDelayed.ts"
import { ready } from "./browseReady.ts"

/** Opens a browser that lasts as long as its scope. */
export const open = (
  options: Broker.BrowseOptions,
  store: Store,
  changes: Changes
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> =>
  Effect.map(
    options.from === "ready" ? ready(options, store, changes) : Effect.sync(() => delayed(options, store, changes)),
    ({ isWhole, next, remove }) => ({
      next,
      remove: (deliveries: ReadonlyArray<Delivery.Delivery>) =>
        Effect.match(Effect.uninterruptible(remove(deliveries.map(receiptOf))), {
          onSuccess: (lost): ReadonlyArray<Broker.SettleFailure> => {
            const error = leaseLost({ operation: "remove", queue: options.queue })
            const gone = new Set(lost)
            return deliveries.flatMap((delivery) =>
              gone.has(receiptOf(delivery)) ? [{ delivery, error, fate: "lost" as const }] : []
            )
          },
          onFailure: (error): ReadonlyArray<Broker.SettleFailure> =>
            deliveries.map((delivery) => ({ delivery, error, fate: "unknown" as const }))
        }),
      identify,
      browsed: () => ({ isWhole: isWhole(), hidden: 0 })
    })
  )
