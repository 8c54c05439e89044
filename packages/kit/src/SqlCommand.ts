/**
 * Commands for the rows of settled messages. A copy needs no second step: the row of its original becomes the copy. Pure.
 *
 * When to use: as `toCommand` of `Settling`, in an adapter for an SQL database.
 */
import { type Delivery, Metadata, Outgoing, type Settlement } from "@requeue/core/port"
import type { NewRow } from "./SqlMessage.ts"

/** A copy that replaces its original: a retry, or a dead letter. */
export type Replacement = Pick<NewRow, "queue" | "delay" | "metadata" | "place">

/**
 * - `Remove`: the message is done.
 * - `GiveBack`: it returns to its place, and the delivery does not count.
 * - `Replace`: the row becomes the copy.
 */
export type Command =
  | { readonly _tag: "Remove" }
  | { readonly _tag: "GiveBack" }
  | ({ readonly _tag: "Replace" } & Replacement)

/** The command of an ack. */
export const remove: Command = { _tag: "Remove" }

/** Returns the command of a settlement. `queue` is the delivery's, `now` is in epoch milliseconds. */
export const of = (
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
      return replace(Outgoing.retry(delivery, settlement, queue, now))
    case "DeadLetter":
      return replace(Outgoing.deadLetter(delivery, settlement, queue, now))
    case "Release":
      return settlement.delay === 0 ? { _tag: "GiveBack" } : replace(Outgoing.hop(delivery, settlement, queue, now))
  }
}

const replace = ({ delay, metadata, place, queue }: Outgoing.Outgoing): Command => ({
  _tag: "Replace",
  queue,
  delay,
  place,
  metadata: Metadata.encode(metadata)
})
