/**
 * A subscription's life on one channel. What was delivered here is settled here or not at all: a delivery tag means
 * something else, or nothing, on every other channel.
 */
import type { Delivery } from "@requeue/core/adapter-kit"
import * as Deferred from "effect/Deferred"
import * as Exit from "effect/Exit"
import type { Channel, Incoming, Properties } from "../client.ts"
import * as Credit from "./credit.ts"
import * as Unanswered from "./unacknowledged.ts"

/** What a delivery's receipt holds. */
export interface Receipt extends Unanswered.Member {
  readonly session: Session
  readonly consumer: Credit.Consumer
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
    readonly toDelivery: (message: Incoming, session: Session, consumer: Credit.Consumer) => Delivery.Delivery
    readonly onDelivery: (delivery: Delivery.Delivery) => void
  }
): Session => {
  const gone = Deferred.makeUnsafe<void>()
  const unanswered = Unanswered.make<Receipt>()
  let isOpen = true

  const end = (): void => {
    if (!isOpen) return
    isOpen = false
    credit.end()
    Deferred.doneUnsafe(gone, Exit.void)
  }

  const deliver = (consumer: Credit.Consumer, message: Incoming | null): void => {
    if (!isOpen) return
    if (message === null) {
      // The server has cancelled us: the queue is gone, or the consumer was too slow. Another channel starts afresh.
      close().catch(() => {})
      return end()
    }
    const delivery = env.toDelivery(message, session, consumer)
    unanswered.add(delivery.receipt as Receipt)
    credit.arrived(consumer)
    env.onDelivery(delivery)
  }

  const close = async (): Promise<void> => {
    await channel.close()
  }

  const credit = Credit.make({
    name: env.name,
    cancel: ({ name }) => channel.cancel(name),
    consume: async (consumer) => {
      // Both are written at once: the driver keeps their order.
      const limited = channel.prefetch(consumer.prefetch)
      const options = { consumerTag: consumer.name }
      const consuming = channel.consume(env.queue, (message) => deliver(consumer, message), options)
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

  const session: Session = {
    credit,
    gone,
    isOpen: () => isOpen,
    take: (receipt) => {
      if (!isOpen || receipt.state !== "open") return false
      receipt.state = "taken"
      return true
    },
    untake: (receipt) => {
      receipt.state = "open"
    },
    ack: (receipts) => {
      if (!isOpen) return false
      for (const receipt of receipts) receipt.state = "acking"
      const last = unanswered.endOfRun()
      if (last !== undefined && !write(last, (message) => channel.ack(message, true))) return false
      for (const receipt of receipts) {
        if (receipt.state === "acking") {
          if (!write(receipt.tag, (message) => channel.ack(message))) return false
          unanswered.answered(receipt)
        }
        credit.settled(receipt.consumer)
      }
      return true
    },
    giveBack: (receipt, how) => {
      if (!isOpen) return false
      const put = (message: Parameters<Channel["ack"]>[0]) =>
        how === "Reject" ? channel.reject(message, true) : channel.nack(message, false, true)
      if (!write(receipt.tag, put)) return false
      unanswered.answered(receipt)
      credit.settled(receipt.consumer)
      return true
    },
    close
  }
  return session
}
