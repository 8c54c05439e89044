/** From a settlement to the command that carries it out. Pure. */
import { type Delivery, Outgoing, type Settlement } from "@requeue/core/port"
import type { Type } from "../../RabbitMqQueue.ts"

/**
 * A command to the server.
 *
 * - `Ack`: `basic.ack`; whatever is asked of a message that was acknowledged, or whose copy is stored.
 * - `Reject`: `basic.reject` with requeue, which every version counts as a failed delivery.
 * - `Nack`: `basic.nack` with requeue, which is counted on servers before 4.3 only.
 * - `Copy`: a publish, its confirmation, then `basic.ack`.
 */
export type Command =
  | { readonly _tag: "Ack" }
  | { readonly _tag: "Reject" }
  | { readonly _tag: "Nack" }
  | { readonly _tag: "Copy"; readonly outgoing: Outgoing.Outgoing }

export const Ack: Command = { _tag: "Ack" }

/** Whether it is acknowledged, whatever the queue is and has counted. */
export const isAck = ({ _tag }: Settlement.Settlement): boolean => _tag === "Ack" || _tag === "Drop"

/** The queue, and how far the server has counted this copy. */
export interface Input {
  /** The queue that delivered. */
  readonly queue: string
  readonly type: Type
  /** Whether the message was acknowledged, or its copy stored, perhaps for an earlier delivery. */
  readonly isSettled: boolean
  /** How often the server has counted this copy as returned. */
  readonly returns: number
  /** Whether these may be those of browsers, and use up no attempts. */
  readonly isUncounted: boolean
  /** The number of returns after which the server itself gives up; `Infinity` for none; `undefined`: nobody has told. */
  readonly deliveryLimit: number | undefined
  /** The delay that the queue gives to the `count`th counted return, where it delays by itself. */
  readonly native: ((count: number) => number) | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Chooses the cheapest command that keeps the attempts and the delay of the settlement. */
export const toCommand = (delivery: Delivery.Delivery, settlement: Settlement.Settlement, input: Input): Command => {
  const { isSettled, now, queue } = input
  if (isSettled) return Ack
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return Ack
    case "Retry":
      return canRequeue(settlement.delay, input)
        ? { _tag: "Reject" }
        : { _tag: "Copy", outgoing: Outgoing.retry(delivery, settlement, queue, now()) }
    case "DeadLetter":
      return { _tag: "Copy", outgoing: Outgoing.deadLetter(delivery, settlement, queue, now()) }
    case "Release":
      return settlement.delay === 0
        ? { _tag: "Nack" }
        : { _tag: "Copy", outgoing: Outgoing.hop(delivery, settlement, queue, now()) }
  }
}

/**
 * The parts of a queue's delivery limit. Up to the first, retries may give the message back; the rest is left for returns
 * that nobody asked for, as by a lost connection. From the second on, a copy takes the place of the message, and the
 * server counts from 0 again. So the server gives nothing up, whatever the policy allows, as long as copies can be made.
 */
const parts = { asked: 1 / 2, replaced: 3 / 4 } as const

/** Whether a rejected message would come back after its delay, counted, and before the server gives it up. */
const canRequeue = (delay: number, { deliveryLimit, isUncounted, native, returns, type }: Input): boolean => {
  if (isUncounted) return false
  // Classic queues do not count, and a limit that nobody has told may be the next return.
  if (type !== "quorum" || deliveryLimit === undefined || returns + 1 >= deliveryLimit * parts.asked) return false
  return delay === (native === undefined ? 0 : native(returns + 1))
}

/**
 * Whether a copy must take the place of a message that has arrived, for the server not to lose count of it. Returns that
 * may be looks tell nothing; from its first delivery to a consumer that `isLimited` on, those of the copy count.
 */
export const mustReplace = ({
  deliveryLimit,
  isLimited,
  isUncounted,
  returns,
  type
}: Pick<Input, "deliveryLimit" | "isUncounted" | "returns" | "type"> & { readonly isLimited: boolean }): boolean => {
  if (returns === 0) return false
  if (deliveryLimit === undefined || returns >= deliveryLimit * parts.replaced) return true
  return isUncounted ? isLimited : type !== "quorum"
}
