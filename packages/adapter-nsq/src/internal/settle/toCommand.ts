/** Converts a settlement to a command. Pure. */
import { type Delivery, Outgoing, type Settlement } from "@requeue/core/port"

/**
 * A command for a delivery.
 *
 * - `Fin` is `FIN`. It also settles a message that was finished before, or whose copy is stored.
 * - `Req` is `REQ`, which nsqd counts as a delivery. Its delay is in whole milliseconds; `wait` is the requested delay,
 *   which may exceed nsqd's limit.
 * - `Copy` publishes a copy into the queue's retry topic or into another queue, then sends `FIN`. If nsqd refuses the
 *   copy, for example of a foreign message of the largest size, `instead` replaces it, if set.
 */
export type Command =
  | { readonly _tag: "Fin" }
  | Requeue
  | {
      readonly _tag: "Copy"
      readonly into: "retry" | "queue"
      /** Whether the copy continues a delay whose due time another process may have set. */
      readonly isHop: boolean
      readonly outgoing: Outgoing.Outgoing
      readonly instead: Requeue | undefined
    }

interface Requeue {
  readonly _tag: "Req"
  readonly delay: number
  readonly wait: number
}

/** The circumstances of a settlement. */
export interface CommandContext {
  readonly queue: string
  readonly retry: "native" | "exact"
  /** The longest delay of a `REQ`, in milliseconds. */
  readonly cap: number
  /** How often nsqd has delivered this copy. */
  readonly deliveries: number
  /** Whether the message was finished or its copy stored, perhaps by an earlier delivery. */
  readonly isFinished: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Deliveries after which a copy continues the count: nsqd's count restarts after 65,535. */
const countLimit = 0x8000

/** Finishes a message. */
export const finish = { _tag: "Fin" } as const

/** Returns the command of a settlement. Most only finish, so `circumstances` is not called for them. */
export const toCommand = (
  delivery: Delivery.Delivery,
  settlement: Settlement.Settlement,
  circumstances: () => CommandContext
): Command => {
  if (settlement._tag === "Ack" || settlement._tag === "Drop") return finish
  const context = circumstances()
  const { isFinished, now, queue } = context
  if (isFinished) return finish
  switch (settlement._tag) {
    case "Retry":
      return canRequeue(settlement.delay, context)
        ? requeue(settlement.delay, context)
        : copy(Outgoing.retry(delivery, settlement, queue, now), false, context)
    case "DeadLetter":
      return {
        _tag: "Copy",
        into: "queue",
        isHop: false,
        outgoing: Outgoing.deadLetter(delivery, settlement, queue, now),
        instead: undefined
      }
    case "Release":
      return settlement.delay === 0
        ? requeue(0, context)
        : copy(Outgoing.hop(delivery, settlement, queue, now), true, context)
  }
}

const canRequeue = (delay: number, { cap, deliveries, retry }: CommandContext): boolean =>
  retry === "native" && delay <= cap && deliveries < countLimit

/** Rounds the delay up: nsqd closes a connection that sends a fraction of a millisecond. */
const requeue = (delay: number, { cap }: CommandContext): Requeue => ({
  _tag: "Req",
  delay: Math.min(Math.ceil(delay), cap),
  wait: delay
})

/** If the message is requeued instead, this process remembers its due time, and nsqd counts its deliveries. */
const copy = (outgoing: Outgoing.Outgoing, isHop: boolean, context: CommandContext): Command => ({
  _tag: "Copy",
  into: "retry",
  isHop,
  outgoing,
  instead: requeue(outgoing.delay, context)
})
