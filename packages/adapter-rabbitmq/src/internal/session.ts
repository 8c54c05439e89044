/**
 * A subscription's life on one channel. What was delivered here is settled here or not at all: a delivery tag means
 * something else, or nothing, on every other channel.
 */
import type { Delivery } from "@requeue/core/Delivery"
import * as Deferred from "effect/Deferred"
import * as Exit from "effect/Exit"
import type { Channel, Incoming, Properties } from "./client.ts"
import * as Credit from "./credit.ts"

/** What a delivery's receipt holds. */
export interface Receipt {
  readonly session: Session
  readonly tag: number
  readonly consumer: string
  readonly redelivered: boolean
  readonly returns: number
  readonly copy: string | undefined
  readonly properties: Properties
}

export interface Session {
  readonly credit: Credit.Credit
  readonly isOpen: () => boolean
  /** Done when the channel is gone. */
  readonly gone: Deferred.Deferred<void>
  /** Takes the delivery for settling; false when it is not ours, or somebody settles it already. */
  readonly take: (receipt: Receipt) => boolean
  /** Gives it back unsettled. */
  readonly untake: (receipt: Receipt) => void
  /** Acknowledges what was taken, the oldest of it in one frame; false when the channel has gone. */
  readonly ack: (receipts: ReadonlyArray<Receipt>) => boolean
  /** Puts back into its queue what was taken; false when the channel has gone. */
  readonly giveBack: (receipt: Receipt, how: "Reject" | "Nack") => boolean
  readonly close: () => Promise<void>
}

export const make = (
  channel: Channel,
  env: {
    readonly queue: string
    readonly name: () => string
    readonly toDelivery: (message: Incoming, receipt: Omit<Receipt, "returns" | "copy">) => Delivery
    readonly onDelivery: (delivery: Delivery) => void
  }
): Session => {
  const gone = Deferred.makeUnsafe<void>()
  /** What the server waits for, by tag, oldest first; and whether somebody settles it already. */
  const unanswered = new Map<number, "open" | "taken">()
  let isOpen = true

  const end = (): void => {
    if (!isOpen) return
    isOpen = false
    unanswered.clear()
    credit.end()
    Deferred.doneUnsafe(gone, Exit.void)
  }

  const deliver = (consumer: string, message: Incoming | null): void => {
    if (!isOpen) return
    if (message === null) {
      // The server has cancelled us: the queue is gone, or the consumer was too slow. Another channel starts afresh.
      close().catch(() => {})
      return end()
    }
    const tag = message.fields.deliveryTag
    unanswered.set(tag, "open")
    credit.arrived(consumer)
    const { redelivered } = message.fields
    env.onDelivery(env.toDelivery(message, { session, tag, consumer, redelivered, properties: message.properties }))
  }

  const close = async (): Promise<void> => {
    await channel.close()
  }

  const credit = Credit.make({
    name: env.name,
    cancel: (consumer) => channel.cancel(consumer),
    consume: async (consumer, prefetch) => {
      // Both are written at once: the driver keeps their order.
      const limited = channel.prefetch(prefetch)
      const consuming = channel.consume(env.queue, (message) => deliver(consumer, message), { consumerTag: consumer })
      await Promise.all([limited, consuming])
    }
  })

  channel.on("close", end)

  /** Writes an answer; false when the channel has closed and only its event is still to come. */
  const write = (tag: number, answer: (message: Parameters<Channel["ack"]>[0]) => void): boolean => {
    try {
      answer({ fields: { deliveryTag: tag } } as Parameters<Channel["ack"]>[0])
      return true
    } catch {
      end()
      return false
    }
  }

  /** The last of those that are older than everything else the server waits for: one frame acknowledges them all. */
  const endOfRun = (tags: ReadonlySet<number>): number | undefined => {
    let last: number | undefined
    for (const tag of unanswered.keys()) {
      if (!tags.has(tag)) break
      last = tag
    }
    return last
  }

  const answered = ({ consumer, tag }: Receipt): void => {
    unanswered.delete(tag)
    credit.settled(consumer)
  }

  const session: Session = {
    credit,
    gone,
    isOpen: () => isOpen,
    take: ({ tag }) => {
      if (unanswered.get(tag) !== "open") return false
      unanswered.set(tag, "taken")
      return true
    },
    untake: ({ tag }) => {
      if (isOpen) unanswered.set(tag, "open")
    },
    ack: (receipts) => {
      if (!isOpen) return false
      const last = endOfRun(new Set(receipts.map(({ tag }) => tag)))
      if (last !== undefined && !write(last, (message) => channel.ack(message, true))) return false
      for (const { tag } of receipts) {
        if ((last === undefined || tag > last) && !write(tag, (message) => channel.ack(message))) return false
      }
      receipts.forEach(answered)
      return true
    },
    giveBack: (receipt, how) => {
      if (!isOpen) return false
      const put = (message: Parameters<Channel["ack"]>[0]) =>
        how === "Reject" ? channel.reject(message, true) : channel.nack(message, false, true)
      if (!write(receipt.tag, put)) return false
      answered(receipt)
      return true
    },
    close
  }
  return session
}
