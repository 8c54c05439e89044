/**
 * Browsers of queues in an SQL table. Ready messages that were shown are leased, uncounted, until the browser closes. Delayed ones
 * stay where they are.
 *
 * When to use: as `admin.browse` of an adapter for an SQL database. The adapter contributes the statements.
 */
import type { Broker, BrokerError, Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as PageSize from "./PageSize.ts"
import type { Errors } from "./SqlErrors.ts"
import type { Position, Row } from "./SqlMessage.ts"

/** The adapter's handle for a shown message. */
export interface Receipt {
  /** Names the copy, see `identify`. */
  readonly copy: string
}

/** A page of messages. */
type Page = ReadonlyArray<Broker.BrowsedMessage>

/** Changes messages, and returns those that it did not find. */
type Change<R> = (receipts: ReadonlyArray<R>) => Effect.Effect<ReadonlyArray<R>, BrokerError.BrokerError>

/** The adapter's part of both kinds of browsers. `R` is its receipt. */
interface Table<R extends Receipt> {
  readonly errors: Errors
  /** Returns a delivery with a receipt. */
  readonly deliver: (row: Row) => Delivery.Delivery & { readonly receipt: R }
  /** Removes shown messages. */
  readonly remove: Change<R>
}

/** The adapter's part of browsers of ready messages. */
export interface Ready<R extends Receipt> extends Table<R> {
  /** The lease, in milliseconds. */
  readonly lease: number
  /**
   * Leases messages, without counting a delivery. Calls `hold` with them even if it is interrupted meanwhile, and returns its result.
   * `isWhole`: no other message is ready.
   */
  readonly claim: (
    limit: number,
    hold: (rows: ReadonlyArray<Row>, isWhole: boolean) => Page
  ) => Effect.Effect<Page, BrokerError.BrokerError>
  readonly extend: Change<R>
  /** Ends leases, and wakes the queue's consumers. */
  readonly giveBack: (receipts: ReadonlyArray<R>) => Effect.Effect<unknown, BrokerError.BrokerError>
}

/** The adapter's part of browsers of delayed messages. */
export interface Delayed<R extends Receipt> extends Table<R> {
  /** Returns messages after a position, soonest first; `undefined`: from the first delayed one on. */
  readonly read: (
    after: Position | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<Row>, BrokerError.BrokerError>
}

/** How often a lease is extended within its duration. */
const extensions = 3

/** Returns a row as its next consumer would see it. */
const show = <R extends Receipt>(row: Row, due: number | undefined, { deliver }: Table<R>) => ({
  delivery: deliver({ ...row, deliveries: row.deliveries + 1 }),
  due
})

interface Parts<R extends Receipt> extends Pick<Table<R>, "errors" | "remove">, Pick<Broker.Browser, "next"> {
  readonly queue: string
  /** The messages that may be removed. */
  readonly shown: () => ReadonlySet<R>
  readonly isWhole: () => boolean
}

const make = <R extends Receipt>({ errors, isWhole, next, queue, remove, shown }: Parts<R>): Broker.Browser => {
  const receiptOf = ({ receipt }: Delivery.Delivery): R => receipt as R // `deliver` made it.
  return {
    next,
    remove: (deliveries) =>
      Effect.suspend(() => {
        const own = deliveries.map(receiptOf).filter((receipt) => shown().has(receipt))
        return Effect.match(Effect.uninterruptible(remove(own)), {
          onSuccess: (lost): ReadonlyArray<Broker.SettleFailure> => {
            const error = errors.leaseLost({ operation: "remove", queue })
            const gone = new Set(own)
            for (const receipt of lost) gone.delete(receipt)
            return deliveries.flatMap((delivery) =>
              gone.has(receiptOf(delivery)) ? [] : [{ delivery, error, fate: "lost" as const }]
            )
          },
          onFailure: (error): ReadonlyArray<Broker.SettleFailure> =>
            deliveries.map((delivery) => ({ delivery, error, fate: "unknown" as const }))
        })
      }),
    identify: (delivery) => receiptOf(delivery).copy,
    browsed: () => ({ isWhole: isWhole(), hidden: 0 })
  }
}

/** Opens a browser of ready messages, which it leases until the scope closes. */
export const ready = <R extends Receipt>(
  { limit, queue }: Broker.BrowseOptions,
  table: Ready<R>
): Effect.Effect<Broker.Browser, never, Scope.Scope> =>
  Effect.gen(function* () {
    const held = new Set<R>()
    const pages = PageSize.make()
    let isWhole = true
    let isLost = false

    const giveBack = Effect.suspend(() => {
      const all = [...held]
      held.clear()
      // After an error, the leases end.
      return Effect.ignore(table.giveBack(all))
    })
    yield* Effect.addFinalizer(() => giveBack)

    const extended = Effect.map(
      Effect.suspend(() => table.extend([...held])),
      (lost) => {
        // A message that was removed meanwhile is not lost.
        for (const receipt of lost) isLost = held.delete(receipt) || isLost
      }
    )
    yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.ignore(extended), table.lease / extensions)))

    const page = (count: number) =>
      table.claim(Math.min(count, limit - held.size, pages.size()), (rows, areAll) => {
        isWhole = areAll
        const shown = rows.map((row) => show(row, undefined, table))
        for (const { delivery } of shown) held.add(delivery.receipt)
        pages.seen(rows.map(({ body }) => body.length))
        return shown
      })
    const next: Broker.Browser["next"] = (count) =>
      Effect.suspend(() => {
        if (!isLost) return page(count)
        isLost = false
        // The next page begins again.
        return Effect.andThen(giveBack, Effect.fail(table.errors.leaseLost({ operation: "browse", queue })))
      })
    const remove: Change<R> = (receipts) =>
      Effect.map(table.remove(receipts), (lost) => {
        for (const receipt of receipts) held.delete(receipt)
        return lost
      })
    return make({ queue, errors: table.errors, shown: () => held, remove, next, isWhole: () => isWhole })
  })

/** Makes a browser of delayed messages. */
export const delayed = <R extends Receipt>({ queue }: Broker.BrowseOptions, table: Delayed<R>): Broker.Browser => {
  const pages = PageSize.make()
  let last: Position | undefined
  /** Those of the last page: earlier ones are returned. */
  let page: ReadonlySet<R> = new Set()
  const next: Broker.Browser["next"] = (count) =>
    Effect.map(
      Effect.suspend(() => table.read(last, Math.min(count, pages.size()))),
      (rows) => {
        last = rows.at(-1) ?? last
        const shown = rows.map((row) => show(row, row.at, table))
        page = new Set(shown.map(({ delivery }) => delivery.receipt))
        pages.seen(rows.map(({ body }) => body.length))
        return shown
      }
    )
  return make({ ...table, queue, shown: () => page, next, isWhole: () => true })
}
