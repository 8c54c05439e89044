/** A subscription on one channel, from opening to end. */
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
  /** Completes when the channel is closed, with the server's error if it sent one. */
  readonly gone: Deferred.Deferred<BrokerError.BrokerError | undefined>
  readonly close: () => Promise<void>
}

/** The operation in {@link cancelled}. */
export const cancelledOperation = "consume, cancelled"

/** The error of a consumer that the server cancelled. */
const cancelled = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: cancelledOperation,
    queue,
    reason: "LeaseLost",
    detail:
      "the server cancelled the consumer: the queue was deleted, or a handler exceeded the server's consumer timeout"
  })

/** Milliseconds that a closing channel waits for copies that are not stored yet. */
const copyWait = 500

/** The queue, and the functions that a session calls. */
interface Dependencies {
  readonly queue: string
  /** Whether the server delivers to only one consumer of the queue. */
  readonly isSingle: boolean
  /** The priority of the session's consumers. */
  readonly priority: number
  /** Whether closing the channel waits for settlements that the server holds back. */
  readonly isFlushed: boolean
  /** Returns a name that no other consumer has. */
  readonly uniqueName: () => string
  /** Runs a function after this many milliseconds. */
  readonly after: (millis: number, run: () => void) => void
  readonly toReceived: (message: Incoming, settler: Settler, consumer: Credit.Consumer) => Received
  readonly onDelivery: (delivery: Received) => void
  /** Called with the deliveries that the server has taken back. */
  readonly onTakenBack: (receipts: ReadonlyArray<Receipt>) => void
  /** Called when the server has accepted a consumer. */
  readonly onConsuming: () => void
}

/** Begins a session on an unused channel. It delivers nothing before it gets credit. */
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
      // The server cancelled the consumer: the queue is gone, or a handler was too slow. Another session follows.
      env.onTakenBack(settler.unsettled(consumer))
      close().catch(() => {})
      return end(cancelled(queue))
    }
    const delivery = env.toReceived(message, settler, consumer)
    settler.add(delivery.receipt)
    credit.arrived(consumer)
    // No handler will run, and a message that is returned by closing the channel counts as failed.
    if (isClosing) settler.requeue(delivery.receipt, "Nack")
    else env.onDelivery(delivery)
  }

  let written = 0
  const close = async (): Promise<void> => {
    isClosing = true
    settler.flush()
    await credit.stop()
    // Otherwise originals whose copies are stored a moment later would be redelivered.
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
      // Both are written without waiting: the driver keeps their order.
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
