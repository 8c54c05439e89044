/** The settler of a channel. */
import { EventLoop } from "@requeue/core/port"
import * as Client from "../client.ts"
import type { Credit } from "./credit.ts"
import type { Receipt, Settler } from "./receipt.ts"
import * as Unacknowledged from "./unacknowledged.ts"

interface Dependencies {
  readonly channel: Client.Channel
  readonly credit: Credit
  /** Called when the channel is found closed before its close event. */
  readonly end: () => void
  readonly isOpen: () => boolean
  /** Runs a function after this many milliseconds. */
  readonly after: (millis: number, run: () => void) => void
  /** Called with the number of written frames. */
  readonly wrote: (frames: number) => void
}

/** How a message is requeued. */
type Return = Parameters<Settler["requeue"]>[1]

/** Milliseconds that an ack waits at most. */
const maxWait = 5

/**
 * Writes acks in as few frames as possible. A quorum queue processes each frame separately. So acks of deliveries after
 * a copy that is not stored yet wait for the copy, and one frame acks them all.
 */
const acknowledgements = (
  { after, channel, credit, isOpen }: Dependencies,
  unacknowledged: Unacknowledged.Unacknowledged<Receipt>,
  write: (frame: () => void, frames?: number) => boolean
) => {
  let waiting: ReadonlyArray<Receipt> = []
  let [isPatient, isTimed] = [true, false]

  const limitWait = (): void => {
    if (isTimed) return
    isTimed = true
    after(maxWait, () => {
      isTimed = false
      acknowledge(waiting, false)
    })
  }

  /** Returns false if the channel is closed. */
  const acknowledge = (receipts: ReadonlyArray<Receipt>, mayWait: boolean): boolean => {
    if (!isOpen()) return false
    const last = unacknowledged.endOfRun()
    if (last !== undefined && !write(() => Client.ack(channel, last, true))) return false
    const others = receipts.filter(({ state }) => state === "acking")
    const isBehindCopy = others.length > 0 && unacknowledged.oldest()?.state === "claimed"
    waiting = isBehindCopy && mayWait && isPatient ? others : []
    if (waiting.length > 0) limitWait()
    else if (!writeEach(others)) return false
    for (const { consumer, state } of receipts) if (state === "answered") credit.settled(consumer)
    return true
  }

  const writeEach = (receipts: ReadonlyArray<Receipt>): boolean => {
    const [first, ...others] = receipts
    if (first === undefined) return true
    const tags = [first.tag, ...others.map(({ tag }) => tag)] as const
    if (!write(() => Client.ackEach(channel, tags), tags.length)) return false
    for (const receipt of receipts) unacknowledged.answered(receipt)
    return true
  }

  return {
    add: (receipts: ReadonlyArray<Receipt>): boolean =>
      acknowledge(waiting.length === 0 ? receipts : [...waiting, ...receipts], true),
    again: (): void => void acknowledge(waiting, true),
    flush: (): void => {
      isPatient = false
      acknowledge(waiting, false)
    }
  }
}

/**
 * Requeues messages at the end of the job and after lowered credit. Often the credit falls because a message is
 * requeued. If the server got the message before the cancel, it would deliver it to the consumer that is about to be
 * cancelled and take it back, which servers before 4.3 count as one more delivery.
 */
const returns = (
  { credit, isOpen }: Dependencies,
  write: (receipt: Receipt, how: Return) => boolean,
  over: () => void
) => {
  const waiting: Array<readonly [Receipt, Return]> = []

  const writeAll = (): void => {
    const barrier = credit.barrier()
    if (barrier !== undefined) return void barrier.then(writeAll)
    for (const [receipt, how] of waiting.splice(0)) if (!isOpen() || !write(receipt, how)) return
    over()
  }
  const writeSoon = EventLoop.atEndOfJob(writeAll)

  return (receipt: Receipt, how: Return): void => {
    waiting.push([receipt, how])
    writeSoon()
  }
}

/** Makes the settler of a channel. */
export const make = (dependencies: Dependencies): Settler => {
  const { channel, credit, end, isOpen, wrote } = dependencies
  const unacknowledged = Unacknowledged.make<Receipt>()

  /** Writes frames, by default one. */
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

  let resume: (() => void) | undefined
  const tellCopied = (): void => {
    if (resume !== undefined && !unacknowledged.all().some(({ state }) => state === "claimed")) resume()
  }

  const acks = acknowledgements(dependencies, unacknowledged, write)

  const writeReturn = (receipt: Receipt, how: Return): boolean => {
    if (!write(() => Client.requeue(channel, receipt.tag, how))) return false
    unacknowledged.answered(receipt)
    credit.settled(receipt.consumer)
    return true
  }
  const requeue = returns(dependencies, writeReturn, () => {
    acks.again()
    tellCopied()
  })

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
      acks.again()
      tellCopied()
    },
    ack: (receipts) => {
      for (const receipt of receipts) receipt.state = "acking"
      const isWritten = acks.add(receipts)
      tellCopied()
      return isWritten
    },
    flush: acks.flush,
    copied: () =>
      new Promise((resolve) => {
        resume = resolve
        tellCopied()
      }),
    requeue: (receipt, how) => {
      if (!isOpen()) return false
      requeue(receipt, how)
      return true
    }
  }
}
