/** Receipts of deliveries, and the settler of a channel, which answers the server for them. */
import type { Delivery } from "@requeue/core/adapter-kit"
import * as Client from "../client.ts"
import * as Wire from "../wire.ts"
import type { Consumer, Credit } from "./credit.ts"
import { identify } from "./identity.ts"
import * as Unacknowledged from "./unacknowledged.ts"

/** Everything that settling a delivery takes. */
export interface Receipt extends Unacknowledged.Member {
  readonly settler: Settler
  readonly consumer: Consumer
  /** The message as the driver has given it. */
  readonly message: Client.Incoming
  /** How often the server counts this copy as returned. */
  readonly returns: number
  /** The same for the copies that this one has replaced; `undefined` for one that has replaced none. */
  readonly formerReturns: number | undefined
  /** Whether its returns may be looks, and use up no attempts. */
  readonly isUncounted: boolean
  /** The name of this copy, once somebody has asked for it; `null` for a foreign message. */
  name: string | null | undefined
}

/** A delivery of this adapter. */
export interface Received extends Delivery.Delivery {
  readonly receipt: Receipt
}

/** Settles the deliveries of one channel, and of no other: a delivery tag means something else there, or nothing. */
export interface Settler {
  readonly isOpen: () => boolean
  readonly barrier: Credit["barrier"]
  /** A delivery has arrived. */
  readonly add: (receipt: Receipt) => void
  /** The unsettled deliveries of a consumer. */
  readonly unsettled: (consumer: Consumer) => ReadonlyArray<Receipt>
  /** Claims a delivery for settling; false when the channel has gone, or the delivery was claimed before. */
  readonly claim: (receipt: Receipt) => boolean
  /** Ends a claim; the delivery is unsettled. */
  readonly unclaim: (receipt: Receipt) => void
  /**
   * Acknowledges claimed deliveries, the oldest of them in one frame; false when the channel has gone. What came after a
   * message whose copy is not stored yet waits for that, for a moment.
   */
  readonly ack: (receipts: ReadonlyArray<Receipt>) => boolean
  /** Writes acknowledgements that wait; from now on, none does. */
  readonly flush: () => void
  /** Puts a claimed delivery back into its queue; false when the channel has gone. */
  readonly requeue: (receipt: Receipt, how: "Reject" | "Nack") => boolean
}

/** The receipt of a delivery that comes back from the core. */
export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // The core returns our own.

/** The properties that a copy of a delivery must keep. Few deliveries become copies, so that they are read for those. */
export const originalOf = ({ message }: Receipt): Client.Properties => Wire.propertiesOf(message)

/** The name of a delivered copy; `undefined` for a foreign message. */
export const identityOf = (delivery: Delivery.Delivery): string | undefined => {
  const receipt = receiptOf(delivery)
  if (receipt.name === undefined) receipt.name = identify(delivery.body, receipt.message.properties) ?? null
  return receipt.name ?? undefined
}

/**
 * The settler of a channel. It calls `end` when it finds the channel closed before the channel has said so, and `wrote` with
 * the number of frames.
 */
export const settler = ({
  channel,
  credit,
  end,
  isOpen,
  later,
  wrote
}: {
  readonly channel: Client.Channel
  readonly credit: Credit
  readonly end: () => void
  readonly isOpen: () => boolean
  /** Runs a function a moment later. */
  readonly later: (run: () => void) => void
  readonly wrote: (frames: number) => void
}): Settler => {
  const unacknowledged = Unacknowledged.make<Receipt>()

  /** Writes frames, one by default. */
  const write = (frame: () => void, frames = 1): boolean => {
    try {
      frame()
      wrote(frames)
      return true
    } catch {
      end()
      return false
    }
  }

  let waiting: ReadonlyArray<Receipt> = []
  let [isPatient, isTimed] = [true, false]

  const startMoment = (): void => {
    if (isTimed) return
    isTimed = true
    later(() => {
      isTimed = false
      acknowledge(waiting, false)
    })
  }

  const acknowledge = (receipts: ReadonlyArray<Receipt>, mayWait: boolean): boolean => {
    if (!isOpen()) return false
    waiting = []
    const last = unacknowledged.endOfRun()
    if (last !== undefined && !write(() => Client.ack(channel, last, true))) return false
    const others = receipts.filter(({ state }) => state === "acking")
    const [first, ...rest] = others
    // Once the copy is stored, one frame is for all of them; for each frame, a quorum queue delivers apart.
    if (first !== undefined && mayWait && isPatient && unacknowledged.oldest()?.state === "claimed") {
      waiting = others
      startMoment()
    } else if (first !== undefined) {
      const tags = [first.tag, ...rest.map(({ tag }) => tag)] as const
      if (!write(() => Client.ackEach(channel, tags), tags.length)) return false
      for (const receipt of others) unacknowledged.answered(receipt)
    }
    for (const { consumer, state } of receipts) if (state === "answered") credit.settled(consumer)
    return true
  }

  return {
    isOpen,
    barrier: credit.barrier,
    add: unacknowledged.add,
    unsettled: (consumer) => unacknowledged.all().filter((receipt) => receipt.consumer === consumer),
    claim: (receipt) => {
      if (!isOpen() || receipt.state !== "open") return false
      receipt.state = "claimed"
      return true
    },
    unclaim: (receipt) => {
      receipt.state = "open"
      acknowledge(waiting, true)
    },
    ack: (receipts) => {
      for (const receipt of receipts) receipt.state = "acking"
      return acknowledge(waiting.length === 0 ? receipts : [...waiting, ...receipts], true)
    },
    flush: () => {
      isPatient = false
      acknowledge(waiting, false)
    },
    requeue: (receipt, how) => {
      if (!isOpen() || !write(() => Client.requeue(channel, receipt.tag, how))) return false
      unacknowledged.answered(receipt)
      credit.settled(receipt.consumer)
      return true
    }
  }
}
