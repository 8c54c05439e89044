/** The adapter's handle for settling a delivery. */
import type { Delivery } from "@requeue/core/port"
import { SqlMessage } from "@requeue/kit"
import type { Store } from "../connect/store.ts"

export interface Receipt extends SqlMessage.Handle, SqlMessage.Position {
  /** Names the copy, see `identify`: a retry is another copy of the same row. */
  readonly copy: string
  /** The queue whose next message of the key this one holds up. */
  readonly lane: string | undefined
  /** When its lease ends at the earliest, in monotonic milliseconds. */
  until: number
  /** Whether the core received the delivery; otherwise the delivery does not count. */
  isSeen: boolean
  /** Whether a settlement is under way, or has ended. */
  isTaken: boolean
  /** Whether the answer to a settlement was lost: it may have happened. */
  isUncertain: boolean
}

export const receiptOf = ({ receipt }: Pick<Delivery.Delivery, "receipt">): Receipt => receipt as Receipt // `deliver` made it.

/** Returns a delivery of a leased row. */
export const deliver = (
  row: SqlMessage.Row,
  until: number,
  { id }: Pick<Store, "id">
): Delivery.Delivery & { readonly receipt: Receipt } => {
  const delivery = SqlMessage.toDelivery(row, "postgres")
  const { at, seq, token } = row
  const copy = `${id}.${seq}.${delivery.metadata.attempts}`
  const lane = row.lane ?? undefined
  return {
    ...delivery,
    receipt: { seq, token, at, copy, lane, until, isSeen: false, isTaken: false, isUncertain: false }
  }
}

/** Names a delivered copy. */
export const identify = (delivery: Delivery.Delivery): string => receiptOf(delivery).copy
