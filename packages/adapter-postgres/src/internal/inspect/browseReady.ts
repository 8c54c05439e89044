/** Shows ready messages, which it leases until the scope closes. */
import type { Broker } from "@requeue/core/port"
import { PageSize } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Store } from "../connect/store.ts"
import { type Receipt, receiptOf } from "../consume/receipt.ts"
import { toRow } from "../rows.ts"
import type { Changes } from "../settle/changes.ts"
import { leaseLost } from "../toBrokerError.ts"
import { changeAll, show, type Shown } from "./changing.ts"
import * as Claiming from "./claiming.ts"

/** How often a lease is extended within its duration. */
const extensions = 3

export const ready = (
  { limit, queue }: Broker.BrowseOptions,
  store: Store,
  changes: Changes
): Effect.Effect<Shown, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { settings } = store
    const claim = yield* Claiming.open(queue, store)
    const held = new Set<Receipt>()
    const pages = PageSize.make()
    /** All shown messages have been claimed: those before the last one are held by others, or were removed. */
    let last = { at: -1, seq: 0 }
    let isWhole = true
    let isLost = false

    const giveBack = Effect.suspend(() => {
      const all = [...held]
      held.clear()
      last = { at: -1, seq: 0 }
      const given = changeAll(all, { operation: "browse", queue }, changes.giveBack, (receipt) => ({
        ...receipt,
        uncounted: 0 as const
      }))
      const first = Math.min(...all.map(({ at }) => at))
      // After an error, the leases end.
      return Effect.ensuring(
        Effect.ignore(given),
        Effect.sync(() => all.length > 0 && store.wake(queue, first))
      )
    })
    yield* Effect.addFinalizer(() => giveBack)

    const extended = Effect.suspend(() =>
      Effect.map(
        changeAll([...held], { operation: "extend", queue }, changes.extend, (receipt) => receipt),
        (lost) => {
          // A message that was removed meanwhile is not lost.
          for (const receipt of lost) isLost = held.delete(receipt) || isLost
        }
      )
    )
    yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.ignore(extended), settings.lease / extensions)))

    const page = (count: number) =>
      store.read({ operation: "browse", queue }, async (session) => {
        const wanted = Math.min(count, limit - held.size, pages.size())
        const { rows, isWhole: areAll } = await claim(session, last, wanted)
        const shown = rows.map(toRow).map((row) => show(row, undefined, store))
        for (const { delivery } of shown) held.add(receiptOf(delivery))
        pages.seen(shown.map(({ delivery }) => delivery.body.length))
        isWhole = areAll
        return shown
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
      const removed = changeAll(ours, { operation: "remove", queue }, changes.remove, (receipt) => receipt)
      return Effect.map(removed, (lost) => {
        for (const receipt of ours) held.delete(receipt)
        return [...lost, ...receipts.filter((receipt) => !ours.includes(receipt))]
      })
    }
    return { next, remove, isWhole: () => isWhole }
  })
