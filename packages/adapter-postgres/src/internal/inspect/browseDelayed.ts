/** Shows delayed messages, which stay where they are. */
import type { Broker } from "@requeue/core/port"
import { PageSize } from "@requeue/kit"
import type { Store } from "../connect/store.ts"
import { type Receipt, receiptOf } from "../consume/receipt.ts"
import { toRow } from "../rows.ts"
import type { Changes } from "../settle/changes.ts"
import { changeAll, show, type Shown } from "./changing.ts"

export const delayed = ({ queue }: Broker.BrowseOptions, store: Store, { removeDelayed }: Changes): Shown => {
  const pages = PageSize.make()
  let last = { at: 0, seq: 0 }
  /** Those of the last page: earlier ones are returned. */
  let page: ReadonlySet<Receipt> = new Set()

  const next: Broker.Browser["next"] = (count) =>
    store.read({ operation: "browse", queue }, async (session) => {
      const limit = Math.min(count, pages.size())
      const rows = (await session.query(store.statements.delayed, [queue, last.at, last.seq, limit])).map(toRow)
      pages.seen(rows.map(({ body }) => body.length))
      last = rows.at(-1) ?? last
      const shown = rows.map((row) => show(row, row.at, store))
      page = new Set(shown.map(({ delivery }) => receiptOf(delivery)))
      return shown
    })
  // A message that is due by now may be delivered, and is no longer held.
  const remove: Shown["remove"] = (receipts) =>
    changeAll(receipts, { operation: "remove", queue }, removeDelayed, (receipt) =>
      page.has(receipt) ? receipt : { ...receipt, token: -1 }
    )
  return { next, remove, isWhole: () => true }
}
