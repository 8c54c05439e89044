/** Changes of shown messages, for both kinds of browsers. */
import type { Broker, BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Add } from "../connect/gather.ts"
import type { Store } from "../connect/store.ts"
import { deliver, type Receipt } from "../consume/receipt.ts"
import type { Handle, StoredRow } from "../rows.ts"
import type { Outcome } from "../settle/changes.ts"

/** The messages of a browser. */
export interface Shown extends Pick<Broker.Browser, "next"> {
  /** Returns those that were not there any more. */
  readonly remove: (receipts: ReadonlyArray<Receipt>) => Effect.Effect<ReadonlyArray<Receipt>, BrokerError.BrokerError>
  readonly isWhole: () => boolean
}

/** Returns a row as its next consumer would see it. */
export const show = (row: StoredRow, due: number | undefined, store: Store): Broker.BrowsedMessage => ({
  delivery: deliver({ ...row, deliveries: row.deliveries + 1 }, 0, store),
  due
})

/** Changes messages, and returns those that were not changed. */
export const changeAll = <R extends Receipt, I extends Handle>(
  receipts: ReadonlyArray<R>,
  context: { readonly operation: string; readonly queue: string },
  add: Add<I, Outcome>,
  itemOf: (receipt: R) => I
): Effect.Effect<ReadonlyArray<R>, BrokerError.BrokerError> => {
  const one = (receipt: R) =>
    Effect.callback<ReadonlyArray<R>, BrokerError.BrokerError>((resume) =>
      add(itemOf(receipt), 1, context, (error, outcome) => {
        if (error !== undefined) return resume(Effect.fail(error))
        resume(Effect.succeed(typeof outcome === "number" ? [] : [receipt]))
      })
    )
  return Effect.map(Effect.forEach(receipts, one, { concurrency: "unbounded" }), (all) => all.flat())
}
