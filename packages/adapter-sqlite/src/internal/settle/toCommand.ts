/** From a settlement to what becomes of the delivery's row. Pure. */
import { type Delivery, Metadata, Outgoing, type Settlement } from "@requeue/core/port"
import { dueAt, type NewRow } from "../rows.ts"

/**
 * - `Remove`: the message is done.
 * - `GiveBack`: it returns to its place, and the delivery does not count.
 * - `Replace`: the row becomes the copy: a retry, or a dead letter.
 */
export type Command =
  | { readonly _tag: "Remove" }
  | { readonly _tag: "GiveBack" }
  | ({ readonly _tag: "Replace" } & Pick<NewRow, "queue" | "at" | "metadata">)

const remove: Command = { _tag: "Remove" }

/** `queue` is the delivery's, `now` is in epoch milliseconds. */
export const toCommand = (
  delivery: Delivery.Delivery,
  settlement: Settlement.Settlement,
  queue: string,
  now: number
): Command => {
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return remove
    case "Retry":
      return replace(Outgoing.retry(delivery, settlement, queue, now), now)
    case "DeadLetter":
      return replace(Outgoing.deadLetter(delivery, settlement, queue, now), now)
    case "Release":
      return settlement.delay === 0
        ? { _tag: "GiveBack" }
        : replace(Outgoing.hop(delivery, settlement, queue, now), now)
  }
}

const replace = ({ delay, metadata, queue }: Outgoing.Outgoing, now: number): Command => ({
  _tag: "Replace",
  queue,
  at: dueAt(now, delay),
  metadata: Metadata.encode(metadata)
})
