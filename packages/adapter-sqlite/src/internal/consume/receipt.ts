/** The adapter's handle for settling a delivery. */
import type { Delivery } from "@requeue/core/port"
import { SqlMessage } from "@requeue/kit"
import type { Store } from "../connect/store.ts"

export interface Receipt extends SqlMessage.Handle {
  /** Names the copy, see `identify`: a retry is another copy of the same row. */
  readonly copy: string
  /** The queue whose next message of the key this one holds up. */
  readonly lane: string | undefined
  /** When its lease ends, in epoch milliseconds. */
  until: number
}

export const receiptOf = ({ receipt }: Pick<Delivery.Delivery, "receipt">): Receipt => receipt as Receipt // `deliver` made it.

/** Returns a delivery of a leased row. */
export const deliver = (
  row: SqlMessage.Row,
  until: number,
  { generation }: Store
): Delivery.Delivery & { readonly receipt: Receipt } => {
  const delivery = SqlMessage.toDelivery(row, "sqlite")
  const { seq, token } = row
  const copy = `${generation()}.${seq}.${delivery.metadata.attempts}`
  return { ...delivery, receipt: { seq, token, copy, lane: row.lane ?? undefined, until } }
}

/** Names a delivered copy. */
export const identify = (delivery: Delivery.Delivery): string => receiptOf(delivery).copy
