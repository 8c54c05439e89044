/** A subscription's life on one channel, from its opening to its end. */
import { BrokerError } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Exit from "effect/Exit"
import type { Channel, Incoming } from "../client.ts"
import * as KeptBack from "../settle/flushPending.ts"
import { toBrokerError } from "../toBrokerError.ts"
import * as Credit from "./credit.ts"
import type { Receipt, Received, Settler } from "./receipt.ts"
import * as Settlers from "./settler.ts"

/** A channel that delivers. */
export interface Session {
  readonly credit: Credit.Credit
  readonly isOpen: () => boolean
  /** Done when the channel is gone: with the server's words for it, where it has said any. */
  readonly gone: Deferred.Deferred<BrokerError.BrokerError | undefined>
  readonly close: () => Promise<void>
}

/** The operation of {@link cancelled}. */
export const cancelledOperation = "consume, cancelled"

/** The error of a consumer that the server has cancelled. */
const cancelled = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: cancelledOperation,
    queue,
    reason: "LeaseLost",
    detail:
      "the server has cancelled the consumer: the queue was deleted, or a handler was longer than its consumer timeout"
  })

/** Milliseconds for which a channel that is to be closed waits for copies that are not stored yet. */
const copyWait = 500

/** The queue, and what a session tells and asks of whoever has it. */
interface Dependencies {
  readonly queue: string
  /** Whether the server may deliver to one consumer of the queue only. */
  readonly isSingle: boolean
  /** The priority of its consumers. */
  readonly priority: number
  /** Whether settlements that the server keeps back are waited for before the channel closes. */
  readonly isFlushed: boolean
  /** A name that no other consumer has. */
  readonly uniqueName: () => string
  /** Runs a function so many milliseconds later. */
  readonly after: (millis: number, run: () => void) => void
  readonly toReceived: (message: Incoming, settler: Settler, consumer: Credit.Consumer) => Received
  readonly onDelivery: (delivery: Received) => void
  /** Called with the deliveries that the server has taken back by itself. */
  readonly onTakenBack: (receipts: ReadonlyArray<Receipt>) => void
  /** Called when the server has accepted a consumer. */
  readonly onConsuming: () => void
}

/** Begins a session on a channel that nobody else uses. It delivers nothing before it gets credit. */
export const make = (channel: Channel, env: Dependencies): Session => {
  const { queue } = env
  const gone = Deferred.makeUnsafe<BrokerError.BrokerError | undefined>()
  let [isOpen, isClosing] = [true, false]

  const end = (error?: BrokerError.BrokerError): void => {
    if (!isOpen) return
    isOpen = false
    credit.end()
    Deferred.doneUnsafe(gone, Exit.succeed(error))
  }

  const deliver = (consumer: Credit.Consumer, message: Incoming | null): void => {
    if (!isOpen) return
    if (message === null) {
      // The server has cancelled the consumer: the queue is gone, or the consumer was too slow. Another session follows.
      env.onTakenBack(settler.unsettled(consumer))
      close().catch(() => {})
      return end(cancelled(queue))
    }
    const delivery = env.toReceived(message, settler, consumer)
    settler.add(delivery.receipt)
    credit.arrived(consumer)
    // Nobody waits for it, and what comes back by the end of the channel counts as failed.
    if (isClosing) settler.requeue(delivery.receipt, "Nack")
    else env.onDelivery(delivery)
  }

  let written = 0
  const close = async (): Promise<void> => {
    isClosing = true
    settler.flush()
    await credit.stop()
    // The originals of copies that are stored a moment later would come again.
    await Promise.race([settler.copied(), new Promise<void>((resume) => env.after(copyWait, resume))])
    if (env.isFlushed && KeptBack.areThere(written)) await KeptBack.flush(channel, queue, env.uniqueName())
    await channel.close()
  }

  const credit = Credit.make({
    isSingle: env.isSingle,
    uniqueName: env.uniqueName,
    after: env.after,
    cancel: ({ name }) => channel.cancel(name),
    consume: async (consumer) => {
      // Both are written at once: the driver keeps their order.
      const limited = channel.prefetch(consumer.prefetch)
      const options = { consumerTag: consumer.name, ...(env.priority === 0 ? {} : { priority: env.priority }) }
      const consuming = channel.consume(queue, (message) => deliver(consumer, message), options)
      await Promise.all([limited, consuming])
      env.onConsuming()
    }
  })
  const settler = Settlers.make({
    channel,
    credit,
    after: env.after,
    end: () => end(),
    isOpen: () => isOpen,
    wrote: (frames) => (written += frames)
  })

  let words: unknown
  channel.on("error", (error) => (words = error))
  channel.on("close", () =>
    end(words === undefined ? undefined : toBrokerError(words, { operation: "consume", queue }))
  )
  return { credit, gone, isOpen: () => isOpen, close }
}
