/** From a settlement to what is done on the channel. Pure. */
import { type Delivery, Outgoing, type Settlement } from "@requeue/core/adapter-kit"

/**
 * - `Ack`: `basic.ack`.
 * - `Reject`: `basic.reject` with requeue, which every version counts as a failed delivery.
 * - `Nack`: `basic.nack` with requeue, which gives back unharmed from 4.3 on.
 * - `Copy`: publish, wait for the confirmation, then `basic.ack`.
 */
export type Command =
  | { readonly _tag: "Ack" }
  | { readonly _tag: "Reject" }
  | { readonly _tag: "Nack" }
  | { readonly _tag: "Copy"; readonly outgoing: Outgoing.Outgoing }

const Ack: Command = { _tag: "Ack" }

export interface Facts {
  readonly queue: string
  readonly queueType: "quorum" | "classic"
  /** How often the server has counted this copy as returned. */
  readonly returns: number
  /** Returns after which the server itself gives up. */
  readonly deliveryLimit: number
  /** The delay that the queue gives to the `count`th counted return, where it delays by itself. */
  readonly native: ((count: number) => number) | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export const toCommand = (delivery: Delivery.Delivery, settlement: Settlement.Settlement, facts: Facts): Command => {
  const { queue } = facts
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return Ack
    case "Retry":
      return canRequeue(settlement.delay, facts)
        ? { _tag: "Reject" }
        : { _tag: "Copy", outgoing: Outgoing.retry(delivery, settlement, queue, facts.now()) }
    case "DeadLetter":
      return { _tag: "Copy", outgoing: Outgoing.deadLetter(delivery, settlement, queue, facts.now()) }
    case "Release":
      return settlement.delay === 0
        ? { _tag: "Nack" }
        : { _tag: "Copy", outgoing: Outgoing.hop(delivery, queue, settlement.delay, facts.now()) }
  }
}

/** Whether a rejected message would come back when it should, counted, and not be given up by the server. */
const canRequeue = (delay: number, { deliveryLimit, native, queueType, returns }: Facts): boolean => {
  // Classic queues do not count; and half of the limit leaves room for returns that are not ours.
  if (queueType === "classic" || returns + 1 >= deliveryLimit / 2) return false
  return delay === (native === undefined ? 0 : native(returns + 1))
}
