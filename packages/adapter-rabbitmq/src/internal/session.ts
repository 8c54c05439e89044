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

export type Answer = "Ack" | "Reject" | "Nack"

export interface Session {
  readonly credit: Credit.Credit
  readonly isOpen: () => boolean
  /** Done when the channel is gone. */
  readonly gone: Deferred.Deferred<void>
  /** Takes the delivery for settling; false when it is not ours, or somebody settles it already. */
  readonly take: (receipt: Receipt) => boolean
  /** Gives it back unsettled. */
  readonly untake: (receipt: Receipt) => void
  /** Writes the answer; false when the channel has gone. */
  readonly answer: (receipt: Receipt, answer: Answer) => boolean
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
  /** Deliveries that nobody settles yet, by tag. */
  const unsettled = new Map<number, string>()
  let isOpen = true

  const end = (): void => {
    if (!isOpen) return
    isOpen = false
    unsettled.clear()
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
    unsettled.set(tag, consumer)
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

  const session: Session = {
    credit,
    gone,
    isOpen: () => isOpen,
    take: ({ tag }) => unsettled.delete(tag),
    untake: ({ consumer, tag }) => {
      if (isOpen) unsettled.set(tag, consumer)
    },
    answer: ({ consumer, tag }, answer) => {
      if (!isOpen) return false
      const message = { fields: { deliveryTag: tag } } as Parameters<Channel["ack"]>[0]
      try {
        if (answer === "Ack") channel.ack(message)
        else if (answer === "Reject") channel.reject(message, true)
        else channel.nack(message, false, true)
      } catch {
        // The channel has closed, and only its event is still to come.
        end()
        return false
      }
      credit.settled(consumer)
      return true
    },
    close
  }
  return session
}
