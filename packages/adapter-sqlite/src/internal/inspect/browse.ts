/** Browsers. */
import type { Broker, BrokerError } from "@requeue/core/port"
import { SqlBrowser } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Connection } from "../connect/connection.ts"
import type { Store } from "../connect/store.ts"
import { deliver, type Receipt } from "../consume/receipt.ts"
import * as Rows from "../rows.ts"
import { errors } from "../toBrokerError.ts"

/** The most messages of one transaction. */
const maxChunk = 250

type Receipts = ReadonlyArray<Receipt>

/** Runs a call for each receipt in transactions of bounded size, and returns those for which it returned `false`. */
const forEach = (
  receipts: Receipts,
  { add }: Store,
  context: { readonly operation: string; readonly queue: string },
  call: (connection: Connection, receipt: Receipt) => boolean
): Effect.Effect<Receipts, BrokerError.BrokerError> => {
  const chunks = Array.from({ length: Math.ceil(receipts.length / maxChunk) }, (_, index) =>
    receipts.slice(index * maxChunk, (index + 1) * maxChunk)
  )
  const refused = (chunk: Receipts) =>
    Effect.callback<Receipts, BrokerError.BrokerError>((resume) => {
      let failed: Receipts = []
      add({
        ...context,
        weight: chunk.length,
        run: (connection) => {
          failed = chunk.filter((receipt) => !call(connection, receipt))
        },
        end: (error) => resume(error === undefined ? Effect.succeed(failed) : Effect.fail(error))
      })
    })
  return Effect.map(Effect.forEach(chunks, refused), (all) => all.flat())
}

/** Leases messages for a browser. */
const claim =
  (queue: string, { add, leaseEnd, nextToken, now }: Store): SqlBrowser.Ready<Receipt>["claim"] =>
  (limit, hold) =>
    Effect.callback((resume) => {
      let claimed: ReturnType<typeof Rows.claim> = []
      let isWhole = true
      add({
        operation: "browse",
        queue,
        weight: limit,
        run: (connection) => {
          const time = now()
          claimed = Rows.claim(connection, {
            queue,
            now: time,
            until: leaseEnd(),
            token: nextToken(),
            limit,
            counts: false
          })
          isWhole = Rows.count(connection, queue, time).ready === 0
        },
        end: (error) => resume(error === undefined ? Effect.succeed(hold(claimed, isWhole)) : Effect.fail(error))
      })
    })

/** Opens a browser that lasts as long as its scope. */
export const open = (
  options: Broker.BrowseOptions,
  store: Store
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> => {
  const { queue } = options
  const { now, settings } = store
  const table = { errors, deliver: (row: Parameters<typeof deliver>[0]) => deliver(row, 0, store) }
  if (options.from === "delayed") {
    return Effect.succeed(
      SqlBrowser.delayed(options, {
        ...table,
        // Messages that are due by now are not delayed.
        read: (after = { at: Math.floor(now()), seq: Number.MAX_SAFE_INTEGER }, limit) =>
          store.read({ operation: "browse", queue }, (connection) => Rows.delayed(connection, queue, after, limit)),
        // A message that is due by now may be delivered, and is no longer held.
        remove: (receipts) =>
          forEach(receipts, store, { operation: "remove", queue }, (connection, receipt) =>
            Rows.removeDelayed(connection, receipt, now())
          )
      })
    )
  }
  return SqlBrowser.ready(options, {
    ...table,
    lease: settings.lease,
    claim: claim(queue, store),
    extend: (receipts) => {
      const until = store.leaseEnd()
      return forEach(receipts, store, { operation: "extend", queue }, (connection, receipt) =>
        Rows.extend(connection, receipt, until)
      )
    },
    giveBack: (receipts) =>
      Effect.ensuring(
        forEach(receipts, store, { operation: "browse", queue }, (connection, receipt) =>
          Rows.giveBack(connection, receipt, 0)
        ),
        Effect.sync(() => store.wake(queue))
      ),
    remove: (receipts) => forEach(receipts, store, { operation: "remove", queue }, Rows.remove)
  })
}
