/** Browsers. */
import { type Broker, BrokerError } from "@requeue/core/port"
import { SqlBrowser, SqlMessage } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Add } from "../connect/gather.ts"
import type { Store } from "../connect/store.ts"
import { deliver, type Receipt } from "../consume/receipt.ts"
import type { Changes, Outcome } from "../settle/changes.ts"
import { errors } from "../toBrokerError.ts"
import * as Claiming from "./claiming.ts"

/** Called with each message that was changed, and when it or the next one of its key is due. */
type OnChange = (receipt: Receipt, at: number) => void

/** Returns what changes messages, and returns those that were not changed. */
const changing =
  <I>(
    operation: string,
    queue: string,
    add: Add<I, Outcome>,
    itemOf: (receipt: Receipt) => I,
    onChange: OnChange = () => undefined
  ) =>
  (receipts: ReadonlyArray<Receipt>): Effect.Effect<ReadonlyArray<Receipt>, BrokerError.BrokerError> => {
    const one = (receipt: Receipt) =>
      Effect.callback<ReadonlyArray<Receipt>, BrokerError.BrokerError>((resume) =>
        add(itemOf(receipt), 1, { operation, queue }, (error, outcome) => {
          if (error !== undefined) return resume(Effect.fail(error))
          if (typeof outcome === "number") onChange(receipt, outcome)
          resume(Effect.succeed(typeof outcome === "number" ? [] : [receipt]))
        })
      )
    return Effect.map(Effect.forEach(receipts, one, { concurrency: "unbounded" }), (all) => all.flat())
  }

/** The leases of shown messages outlive a connection, so they are not lost with it. */
const withoutLoss = (error: BrokerError.BrokerError): BrokerError.BrokerError => {
  const { broker, cause, detail, operation, queue, reason } = error
  if (reason !== "ConnectionLost") return error
  return new BrokerError.BrokerError({ broker, operation, queue, reason: "ConnectionFailed", detail, cause })
}

const same = (receipt: Receipt): Receipt => receipt

/** Opens a browser that lasts as long as its scope. */
export const open = (
  options: Broker.BrowseOptions,
  store: Store,
  changes: Changes
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> => {
  const { from, queue } = options
  const { read, settings, statements, wake } = store
  const onRemove: OnChange = ({ lane }, at) => lane !== undefined && wake(lane, at)
  const table = { errors, deliver: (row: SqlMessage.Row) => deliver(row, 0, store) }
  if (from === "delayed") {
    return Effect.succeed(
      SqlBrowser.delayed(options, {
        ...table,
        read: ({ at, seq } = Claiming.beginning, limit) =>
          read({ operation: "browse", queue }, async (session) => {
            const rows = await session.query(statements.delayed, [queue, at, seq, limit])
            return rows.map(SqlMessage.fromColumns)
          }),
        // A message that is due by now may be delivered, and is no longer held.
        remove: changing("remove", queue, changes.removeDelayed, same, onRemove)
      })
    )
  }
  const giveBack = changing("browse", queue, changes.giveBack, (receipt) => ({ ...receipt, uncounted: 0 as const }))
  return Effect.flatMap(Claiming.open(queue, store), (claim) =>
    SqlBrowser.ready(options, {
      ...table,
      lease: settings.lease,
      claim: (limit, hold) =>
        Effect.mapError(
          read({ operation: "browse", queue }, async (session) => {
            const { isWhole, rows } = await claim(session, limit)
            return hold(rows, isWhole)
          }),
          withoutLoss
        ),
      extend: changing("extend", queue, changes.extend, same),
      giveBack: (receipts) =>
        Effect.ensuring(
          giveBack(receipts),
          Effect.sync(() => receipts.length > 0 && wake(queue, Math.min(...receipts.map(({ at }) => at))))
        ),
      remove: changing("remove", queue, changes.remove, same, onRemove)
    })
  )
}
