/** Converts a settlement to the command that carries it out. Pure. */
import { type Delivery, Outgoing, type Settlement } from "@requeue/core/port"
import type { Type } from "../../RabbitMqQueue.ts"

/**
 * A command to the server.
 *
 * - `Ack`: `basic.ack`; for every settlement of a message that was acked, or whose copy is stored.
 * - `Reject`: `basic.reject` with requeue, which every version counts as a failed delivery.
 * - `Nack`: `basic.nack` with requeue, which only servers before 4.3 count.
 * - `Copy`: a publish, its confirmation, then `basic.ack`.
 */
export type Command =
  | { readonly _tag: "Ack" }
  | { readonly _tag: "Reject" }
  | { readonly _tag: "Nack" }
  | { readonly _tag: "Copy"; readonly outgoing: Outgoing.Outgoing }

export const Ack = { _tag: "Ack" } as const

/** The queue, and the server's count for this copy. */
export interface Input {
  /** The queue that delivered. */
  readonly queue: string
  readonly type: Type
  /** Whether the message was acked, or its copy stored, perhaps for an earlier delivery. */
  readonly isSettled: boolean
  /** How often this copy was returned to the queue, by the server's count. */
  readonly returns: number
  /** Whether browsing may have caused these returns, which then use up no attempts. */
  readonly isUncounted: boolean
  /** The number of returns after which the server dead-letters; `Infinity` for none; `undefined` if unknown. */
  readonly deliveryLimit: number | undefined
  /** Milliseconds by which the queue delays a message that returns for the `count`th time; `undefined`: it does not. */
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
 * Fractions of a queue's delivery limit. Below the first, a retry returns the message; the rest is a reserve for other
 * returns, such as those of a lost connection. From the second on, a copy replaces the message and the server counts
 * from 0 again. So the server never dead-letters a message early while copies can be made.
 */
const parts = { asked: 1 / 2, replaced: 3 / 4 } as const

/** Whether a rejected message would be redelivered after its delay, counted, and before the server dead-letters it. */
const canRequeue = (delay: number, { deliveryLimit, isUncounted, native, returns, type }: Input): boolean => {
  if (isUncounted) return false
  // Classic queues do not count, and an unknown limit may be reached at the next return.
  if (type !== "quorum" || deliveryLimit === undefined || returns + 1 >= deliveryLimit * parts.asked) return false
  return delay === (native === undefined ? 0 : native(returns + 1))
}

/**
 * Whether a copy must replace a message that has arrived, because the server would lose count of it. Returns that may
 * come from browsing prove nothing. From its first delivery to a consumer that `isLimited`, the copy's returns count.
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
