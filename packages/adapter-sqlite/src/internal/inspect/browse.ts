/** Browsers. */
import type { Broker, BrokerError } from "@requeue/core/port"
import { SqlBrowser, type SqlMessage } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Claims from "../claims.ts"
import type { Connection } from "../connect/connection.ts"
import type { Store } from "../connect/store.ts"
import { deliver, type Receipt } from "../consume/receipt.ts"
import * as Rows from "../rows.ts"
import { errors } from "../toBrokerError.ts"

/** The most messages of one transaction. */
const maxChunk = 250

/**
 * Returns what runs a call for each message in transactions of bounded size, and returns those for which it returned `false`. Then it
 * wakes the consumers of their lanes.
 */
const changing =
  (
    operation: string,
    queue: string,
    { add, wake }: Store,
    call: (connection: Connection, receipt: Receipt) => boolean
  ): SqlBrowser.Ready<Receipt>["remove"] =>
  (receipts) => {
    const chunks = Array.from({ length: Math.ceil(receipts.length / maxChunk) }, (_, index) =>
      receipts.slice(index * maxChunk, (index + 1) * maxChunk)
    )
    const refused = (chunk: ReadonlyArray<Receipt>) =>
      Effect.callback<ReadonlyArray<Receipt>, BrokerError.BrokerError>((resume) => {
        let failed: ReadonlyArray<Receipt> = []
        add({
          operation,
          queue,
          weight: chunk.length,
          run: (connection) => {
            failed = chunk.filter((receipt) => !call(connection, receipt))
          },
          end: (error) => {
            for (const lane of new Set(chunk.map(({ lane }) => lane))) if (lane !== undefined) wake(lane)
            resume(error === undefined ? Effect.succeed(failed) : Effect.fail(error))
          }
        })
      })
    return Effect.map(Effect.forEach(chunks, refused), (all) => all.flat())
  }

/** Leases messages for a browser. */
const claim =
  (queue: string, { add, leaseEnd, nextToken, now }: Store): SqlBrowser.Ready<Receipt>["claim"] =>
  (limit, hold) =>
    Effect.callback((resume) => {
      let rows: ReadonlyArray<SqlMessage.Row> = []
      let isWhole = true
      add({
        operation: "browse",
        queue,
        weight: limit,
        run: (connection) => {
          const time = now()
          const options = { queue, now: time, until: leaseEnd(), token: nextToken(), limit, counts: false }
          Claims.expire(connection, time)
          rows = Claims.ofAll(connection, options).map((row) => ({ ...row, blocks: Rows.blocks(connection, row) }))
          isWhole = Rows.count(connection, queue, time).ready === 0
        },
        end: (error) => resume(error === undefined ? Effect.succeed(hold(rows, isWhole)) : Effect.fail(error))
      })
    })

/** Opens a browser that lasts as long as its scope. */
export const open = (
  options: Broker.BrowseOptions,
  store: Store
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> => {
  const { from, queue } = options
  const { leaseEnd, now, read, settings, wake } = store
  const table = { errors, deliver: (row: SqlMessage.Row) => deliver(row, 0, store) }
  if (from === "delayed") {
    return Effect.succeed(
      SqlBrowser.delayed(options, {
        ...table,
        // Messages that are due by now are not delayed.
        read: (after = { at: Math.floor(now()), seq: Number.MAX_SAFE_INTEGER }, limit) =>
          read({ operation: "browse", queue }, (connection) => Rows.delayed(connection, queue, after, limit)),
        // A message that is due by now may be delivered, and is no longer held.
        remove: changing("remove", queue, store, (connection, receipt) =>
          Rows.removeDelayed(connection, receipt, now())
        )
      })
    )
  }
  const giveBack = changing("browse", queue, store, (connection, receipt) => Rows.giveBack(connection, receipt, 0))
  return SqlBrowser.ready(options, {
    ...table,
    lease: settings.lease,
    claim: claim(queue, store),
    extend: changing("extend", queue, store, (connection, receipt) => Rows.extend(connection, receipt, leaseEnd())),
    giveBack: (receipts) =>
      Effect.ensuring(
        giveBack(receipts),
        Effect.sync(() => wake(queue))
      ),
    remove: changing("remove", queue, store, Rows.remove)
  })
}
