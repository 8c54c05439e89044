/** From a settlement to what is done about a delivery. Pure. */
import { type Delivery, Outgoing, type Settlement } from "@requeue/core/adapter-kit"

/**
 * - `Fin`: `FIN`.
 * - `Req`: `REQ`, counted by nsqd. `due` is when the message may come again.
 * - `Copy`: publish into the queue's retry topic, or into another queue; when that is confirmed, `FIN`.
 */
export type Command =
  | { readonly _tag: "Fin" }
  | { readonly _tag: "Req"; readonly delay: number; readonly due: number }
  | { readonly _tag: "Copy"; readonly into: "retry" | "queue"; readonly outgoing: Outgoing.Outgoing }

export interface Facts {
  readonly queue: string
  readonly retry: "native" | "exact"
  /** The longest delay of a `REQ`, in milliseconds. */
  readonly cap: number
  /** How often nsqd has delivered this copy. */
  readonly deliveries: number
  /** Whether the copy is within the largest message. */
  readonly fits: (outgoing: Outgoing.Outgoing) => boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** nsqd's count begins anew after 65,535: long before, a copy carries it on. */
const countLimit = 0x8000

export const toCommand = (delivery: Delivery.Delivery, settlement: Settlement.Settlement, facts: Facts): Command => {
  const { now, queue } = facts
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return { _tag: "Fin" }
    case "Retry":
      return canRequeue(settlement.delay, facts)
        ? requeue(settlement.delay, facts)
        : copy(Outgoing.retry(delivery, settlement, queue, now), facts)
    case "DeadLetter":
      return { _tag: "Copy", into: "queue", outgoing: Outgoing.deadLetter(delivery, settlement, queue, now) }
    case "Release":
      return settlement.delay === 0
        ? requeue(0, facts)
        : copy(Outgoing.hop(delivery, queue, settlement.delay, now), facts)
  }
}

const canRequeue = (delay: number, { cap, deliveries, retry }: Facts): boolean =>
  retry === "native" && delay <= cap && deliveries < countLimit

/** A fraction of a millisecond would end the connection. */
const requeue = (delay: number, { cap, now }: Facts): Command => ({
  _tag: "Req",
  delay: Math.min(Math.ceil(delay), cap),
  due: now + delay
})

/** A foreign message of the largest size has no room for an envelope: nsqd's own count must do. */
const copy = (outgoing: Outgoing.Outgoing, facts: Facts): Command =>
  facts.fits(outgoing) ? { _tag: "Copy", into: "retry", outgoing } : requeue(outgoing.delay, facts)
