/** Messages that were received: until when each is hidden, and which receipt can settle it. */
import { epoch } from "../world/Machine.ts"
import type * as Store from "../world/Store.ts"
import type { Due, World } from "../world/World.ts"

/** A message as a receive returns it. */
export interface Received {
  /** The receipt, a new one for each receive. */
  readonly handle: number
  /** The broker's own name of the copy. */
  readonly messageId: string
  readonly parcel: Store.Parcel
  /** How often it was received, this time included. */
  readonly count: number
  /** Milliseconds since the epoch. */
  readonly sentAt: number
  readonly movedFrom: string | undefined
}

/** A copy that was received. */
interface Message {
  readonly held: Store.Held
  /** The last receipt; `undefined` once it has left its queue. */
  handle: number | undefined
  receivedAt: number
  /** Until when it is hidden. */
  hiddenUntil: number
  /** The end of its lease, while it is worked on. */
  expiry: Due | undefined
}

/** All messages that were received. */
export interface Leases {
  /** Delivers a copy, and hides it for this many milliseconds. */
  readonly hand: (held: Store.Held, process: string, lease: number) => Received
  /** The message that a receipt was for. */
  readonly find: (handle: number) => Message | undefined
  /** Hides a message in progress for this many milliseconds from now. */
  readonly extend: (message: Message, millis: number) => void
  /** Returns a message, to be delivered after this many milliseconds. */
  readonly giveBack: (message: Message, millis: number) => void
  /** A copy has left its queue. Must be called before it leaves. */
  readonly end: (held: Store.Held) => void
  /** The hidden messages. */
  readonly hidden: (queue: string) => ReadonlyArray<Message>
}

/** Nothing received yet. */
export const make = (world: World, store: Store.Store): Leases => {
  const messages = new Map<Store.Held, Message>()
  const receipts = new Map<number, Message>()

  const hide = (message: Message, millis: number): void => {
    if (message.expiry !== undefined) message.expiry.run = undefined
    message.expiry = undefined
    message.hiddenUntil = world.now() + millis
    store.withdraw(message.held)
  }

  const extend = (message: Message, millis: number): void => {
    hide(message, millis)
    message.expiry = world.after(millis, () => {
      message.expiry = undefined
      store.back(message.held, message.handle, 0, "lease")
    })
  }

  return {
    hand: (held, process, lease) => {
      const handle = store.handOut(held, process)
      const message: Message = messages.get(held) ?? { held, handle, receivedAt: 0, hiddenUntil: 0, expiry: undefined }
      message.handle = handle
      message.receivedAt = world.now()
      messages.set(held, message)
      receipts.set(handle, message)
      extend(message, lease)
      const { copy, count, movedFrom, parcel, storedAt } = held
      return { handle, messageId: `sqs${copy}`, parcel, count, sentAt: epoch + Math.floor(storedAt), movedFrom }
    },
    find: (handle) => receipts.get(handle),
    extend,
    giveBack: (message, millis) => {
      hide(message, millis)
      store.back(message.held, message.handle, millis, "asked")
    },
    end: (held) => {
      const message = messages.get(held)
      if (message === undefined) return
      hide(message, 0)
      message.handle = undefined
      messages.delete(held)
    },
    hidden: (queue) =>
      [...messages.values()].filter(({ held, hiddenUntil }) => held.queue === queue && hiddenUntil > world.now())
  }
}
