/** From a settlement to the command that carries it out. Pure. */
import { type Delivery, Outgoing, type Settlement } from "@requeue/core/adapter-kit"

/**
 * A command for a delivery.
 *
 * - `Fin` is `FIN`.
 * - `Req` is `REQ`, which nsqd counts as a delivery. Its delay is in whole milliseconds; `due` is when the message may
 *   come again, in milliseconds since the epoch.
 * - `Copy` publishes a copy into the queue's retry topic or into another queue, then sends `FIN`.
 */
export type Command =
  | { readonly _tag: "Fin" }
  | { readonly _tag: "Req"; readonly delay: number; readonly due: number }
  | { readonly _tag: "Copy"; readonly into: "retry" | "queue"; readonly outgoing: Outgoing.Outgoing }

/** The circumstances of a settlement. */
export interface CommandContext {
  readonly queue: string
  readonly retry: "native" | "exact"
  /** The longest delay of a `REQ`, in milliseconds. */
  readonly cap: number
  /** How often nsqd has delivered this copy. */
  readonly deliveries: number
  /** Whether a copy is within the limits of nsqd. */
  readonly fits: (outgoing: Outgoing.Outgoing) => boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Deliveries after which a copy continues the count: that of nsqd begins anew after 65,535. */
const countLimit = 0x8000

/** The command of a settlement. */
export const toCommand = (
  delivery: Delivery.Delivery,
  settlement: Settlement.Settlement,
  context: CommandContext
): Command => {
  const { now, queue } = context
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return { _tag: "Fin" }
    case "Retry":
      return canRequeue(settlement.delay, context)
        ? requeue(settlement.delay, context)
        : copy(Outgoing.retry(delivery, settlement, queue, now), context)
    case "DeadLetter":
      return { _tag: "Copy", into: "queue", outgoing: Outgoing.deadLetter(delivery, settlement, queue, now) }
    case "Release":
      return settlement.delay === 0
        ? requeue(0, context)
        : copy(Outgoing.hop(delivery, settlement, queue, now), context)
  }
}

const canRequeue = (delay: number, { cap, deliveries, retry }: CommandContext): boolean =>
  retry === "native" && delay <= cap && deliveries < countLimit

/** nsqd closes a connection that writes a fraction of a millisecond. */
const requeue = (delay: number, { cap, now }: CommandContext): Command => ({
  _tag: "Req",
  delay: Math.min(Math.ceil(delay), cap),
  due: now + delay
})

/** A copy; where it would be too large, as of a foreign message of the largest size, a requeue, which nsqd counts. */
const copy = (outgoing: Outgoing.Outgoing, context: CommandContext): Command =>
  context.fits(outgoing) ? { _tag: "Copy", into: "retry", outgoing } : requeue(outgoing.delay, context)
