/** Deliveries: an adapter gives the core one for each time that the broker hands a message to this consumer. */
import type { Headers, Native } from "./Message.ts"
import type { ErrorSummary, Metadata } from "./Metadata.ts"

/** One handing-out of a message to one consumer. */
export interface Delivery {
  /** The bytes as they were published. */
  readonly body: Uint8Array
  /**
   * The message's headers, without the broker's own and without the metadata. They are frozen: a handler sees them, and
   * copies of the message carry them.
   */
  readonly headers: Headers
  /**
   * Deliveries of this message so far, this one included: the attempts of the metadata plus the broker's own count of
   * deliveries of this copy.
   */
  readonly attempts: number
  /**
   * The metadata that the message carries. For a foreign message, the adapter makes it from the broker's own id and
   * timestamp, the same on every delivery: by `id` and `firstPublished` the core recognises a message whose ack was lost.
   */
  readonly metadata: Metadata
  /** Whether the broker has delivered this copy before; `undefined` where it does not tell. */
  readonly redelivered?: boolean | undefined
  /**
   * The broker's own facts of this delivery, under the broker's name, and frozen. An adapter makes it a getter, because few
   * handlers ask, and one of a class, because an object with a getter of its own is slow to make and to read. They are no part
   * of a copy: the adapter keeps what a copy must have. Default: there are none.
   */
  readonly native?: Native | undefined
  /**
   * The group in whose order the message is handled, where the broker keeps the order of groups. Its messages are handed to
   * the handler in the order of their deliveries, one batch or single message of them at a time, and none is acked before
   * those in front of it: with the first that is retried, those behind it are released, unless every retry is a copy. The
   * broker MUST deliver these behind it, and nothing of the group while it waits for its delay. The number of deliveries alone gives none of them up, because
   * each of them is delivered as often as those in front of it. Default: the message is in no group.
   */
  readonly group?: string | undefined
  /**
   * Why the adapter could not read the message. It is given up as undecodable, with this error and with the bytes of `body`,
   * and no handler sees it. An adapter MUST tell it rather than throw: there is nobody to catch it but the process. Default:
   * the message was read.
   */
  readonly unreadable?: ErrorSummary | undefined
  /** The adapter's own handle for settling; opaque to the core. */
  readonly receipt: unknown
}

const none: Native = Object.freeze({})

/** The broker's own facts of a delivery; an empty object where there are none. */
export const nativeOf = ({ native }: Delivery): Native => native ?? none
