/** From a settlement to the command for a delivery. Pure. */
import { type Delivery, Outgoing, type Settlement } from "@requeue/core/port"

/**
 * - `Remove`: the message is done.
 * - `Requeue`: Acme delivers it again at once.
 */
export type Direct = { readonly _tag: "Remove" } | { readonly _tag: "Requeue" }

/** Publishes a copy, and removes the original when the copy is stored. */
export interface Copy {
  readonly _tag: "Copy"
  readonly outgoing: Outgoing.Outgoing
}

export const remove: Direct = { _tag: "Remove" }

/**
 * Every retry is a copy, which works on each broker that can delay published messages. If Acme can delay the original, let a
 * retry do that; then Acme must count its attempts. `queue` is the delivery's, `now` is in milliseconds since the epoch.
 */
export const toCommand = (
  delivery: Delivery.Delivery,
  settlement: Settlement.Settlement,
  queue: string,
  now: number
): Direct | Copy => {
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return remove
    case "Retry":
      return { _tag: "Copy", outgoing: Outgoing.retry(delivery, settlement, queue, now) }
    case "DeadLetter":
      return { _tag: "Copy", outgoing: Outgoing.deadLetter(delivery, settlement, queue, now) }
    case "Release":
      return settlement.delay === 0
        ? { _tag: "Requeue" }
        : { _tag: "Copy", outgoing: Outgoing.hop(delivery, settlement, queue, now) }
  }
}
