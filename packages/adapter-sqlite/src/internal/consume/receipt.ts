/** The adapter's handle for settling a delivery. */
import type { Delivery } from "@requeue/core/port"
import type { Handle, Row } from "../rows.ts"
import type { Store } from "../connect/store.ts"
import { toDelivery } from "./toDelivery.ts"

export interface Receipt extends Handle {
  /** Names the copy, see `identify`: a retry is another copy of the same row. */
  readonly copy: string
  /** When its lease ends, in epoch milliseconds. */
  until: number
}

export const receiptOf = ({ receipt }: Pick<Delivery.Delivery, "receipt">): Receipt => receipt as Receipt // `deliver` made it.

/** Returns a delivery of a leased row. */
export const deliver = (
  row: Row,
  until: number,
  { generation }: Store
): Delivery.Delivery & { readonly receipt: Receipt } => {
  const delivery = toDelivery(row)
  const { seq, token } = row
  const copy = `${generation()}.${seq}.${delivery.metadata.attempts}`
  return { ...delivery, receipt: { seq, token, copy, until } }
}

/** Names a delivered copy. */
export const identify = (delivery: Delivery.Delivery): string => receiptOf(delivery).copy
