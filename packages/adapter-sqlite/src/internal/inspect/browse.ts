/** Browsers. Ready messages that were shown are leased, uncounted; delayed ones stay in the queue. */
import type { Broker, BrokerError, Delivery } from "@requeue/core/port"
import { PageSize } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Connection } from "../connect/connection.ts"
import type { Store } from "../connect/store.ts"
import { deliver, identify, type Receipt, receiptOf } from "../consume/receipt.ts"
import * as Rows from "../rows.ts"
import { leaseLost } from "../toBrokerError.ts"

/** How often a lease is extended within its duration. */
const extensions = 3

/** The most messages of one transaction. */
const maxChunk = 250

/** The messages of a browser. */
interface Shown extends Pick<Broker.Browser, "next"> {
  /** Returns those that were not there any more. */
  readonly remove: (receipts: ReadonlyArray<Receipt>) => Effect.Effect<ReadonlyArray<Receipt>, BrokerError.BrokerError>
  readonly isWhole: () => boolean
}

/** Returns a row as its next consumer would see it. */
const show = (row: Rows.Row, due: number | undefined, store: Store): Broker.BrowsedMessage => ({
  delivery: deliver({ ...row, deliveries: row.deliveries + 1 }, 0, store),
  due
})

/** Runs a call for each receipt in transactions of bounded size, and returns those for which it returned `false`. */
const forEach = (
  receipts: ReadonlyArray<Receipt>,
  { add }: Store,
  context: { readonly operation: string; readonly queue: string },
  call: (connection: Connection, receipt: Receipt) => boolean
): Effect.Effect<ReadonlyArray<Receipt>, BrokerError.BrokerError> => {
  const chunks = Array.from({ length: Math.ceil(receipts.length / maxChunk) }, (_, index) =>
    receipts.slice(index * maxChunk, (index + 1) * maxChunk)
  )
  const refused = (chunk: ReadonlyArray<Receipt>) =>
    Effect.callback<ReadonlyArray<Receipt>, BrokerError.BrokerError>((resume) => {
      let failed: ReadonlyArray<Receipt> = []
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

/** Leases shown messages until the scope closes. */
const ready = ({ limit, queue }: Broker.BrowseOptions, store: Store): Effect.Effect<Shown, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { leaseEnd, nextToken, now, settings } = store
    const held = new Set<Receipt>()
    const pages = PageSize.make()
    let isWhole = true
    let isLost = false

    const giveBack = Effect.suspend(() => {
      const all = [...held]
      held.clear()
      const given = forEach(all, store, { operation: "browse", queue }, (connection, receipt) => {
        Rows.giveBack(connection, receipt, 0)
        return true
      })
      // After an error, the leases end.
      return Effect.ensuring(
        Effect.ignore(given),
        Effect.sync(() => store.wake(queue))
      )
    })
    yield* Effect.addFinalizer(() => giveBack)

    const extend = Effect.suspend(() => {
      const until = leaseEnd()
      return forEach(
        [...held],
        store,
        { operation: "extend", queue },
        (connection, receipt) =>
          // A message that was removed meanwhile is not lost.
          !held.has(receipt) || Rows.extend(connection, receipt, until)
      )
    })
    const extended = Effect.map(extend, (lost) => {
      for (const receipt of lost) isLost = held.delete(receipt) || isLost
    })
    yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.ignore(extended), settings.lease / extensions)))

    const page = (count: number) =>
      Effect.callback<ReadonlyArray<Broker.BrowsedMessage>, BrokerError.BrokerError>((resume) => {
        const wanted = Math.min(count, limit - held.size, pages.size())
        let shown: ReadonlyArray<Broker.BrowsedMessage> = []
        store.add({
          operation: "browse",
          queue,
          weight: wanted,
          run: (connection) => {
            const time = now()
            const options = { queue, now: time, until: leaseEnd(), token: nextToken(), limit: wanted, counts: false }
            shown = Rows.claim(connection, options).map((row) => show(row, undefined, store))
            isWhole = Rows.count(connection, queue, time).ready === 0
          },
          end: (error) => {
            if (error !== undefined) return resume(Effect.fail(error))
            pages.seen(shown.map(({ delivery }) => delivery.body.length))
            for (const { delivery } of shown) held.add(receiptOf(delivery))
            resume(Effect.succeed(shown))
          }
        })
      })

    const next: Broker.Browser["next"] = (count) =>
      Effect.suspend(() => {
        if (!isLost) return page(count)
        isLost = false
        // The next page begins again.
        return Effect.andThen(giveBack, Effect.fail(leaseLost({ operation: "browse", queue })))
      })
    const remove: Shown["remove"] = (receipts) => {
      const ours = receipts.filter((receipt) => held.has(receipt))
      const removed = forEach(ours, store, { operation: "remove", queue }, Rows.remove)
      return Effect.map(removed, (lost) => {
        for (const receipt of ours) held.delete(receipt)
        return [...lost, ...receipts.filter((receipt) => !ours.includes(receipt))]
      })
    }
    return { next, remove, isWhole: () => isWhole }
  })

/** Shows delayed messages, which stay where they are. */
const delayed = ({ queue }: Broker.BrowseOptions, store: Store): Shown => {
  const pages = PageSize.make()
  let last = { at: 0, seq: 0 }
  let isBegun = false
  /** Those of the last page: earlier ones are returned. */
  let page: ReadonlySet<Receipt> = new Set()

  const next: Broker.Browser["next"] = (count) =>
    store.read({ operation: "browse", queue }, (connection) => {
      // Messages that are due by now are not delayed.
      if (!isBegun) last = { at: Math.floor(store.now()), seq: Number.MAX_SAFE_INTEGER }
      isBegun = true
      const rows = Rows.delayed(connection, queue, last, Math.min(count, pages.size()))
      pages.seen(rows.map(({ body }) => body.length))
      last = rows.at(-1) ?? last
      const shown = rows.map((row) => show(row, row.at, store))
      page = new Set(shown.map(({ delivery }) => receiptOf(delivery)))
      return shown
    })
  // A message that is due by now may be delivered, and is no longer held.
  const remove: Shown["remove"] = (receipts) =>
    forEach(
      receipts,
      store,
      { operation: "remove", queue },
      (connection, receipt) => page.has(receipt) && Rows.removeDelayed(connection, receipt, store.now())
    )
  return { next, remove, isWhole: () => true }
}

/** Opens a browser that lasts as long as its scope. */
export const open = (
  options: Broker.BrowseOptions,
  store: Store
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> =>
  Effect.map(
    options.from === "ready" ? ready(options, store) : Effect.sync(() => delayed(options, store)),
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
