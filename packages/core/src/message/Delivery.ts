/** Deliveries: each time the broker hands a message to a consumer, the adapter passes a delivery to the core. */
import type { Place } from "./Lane.ts"
import type { Headers, Native } from "./Message.ts"
import type { ErrorSummary, Metadata } from "./Metadata.ts"

/** One handover of a message to one consumer. */
export interface Delivery {
  /** The bytes as they were published. */
  readonly body: Uint8Array
  /**
   * The message's headers, frozen, without the broker's own headers and the metadata. Handlers see them, and copies
   * keep them.
   */
  readonly headers: Headers
  /**
   * How often this message was delivered, this time included: the metadata's attempts plus the broker's count for this
   * copy.
   */
  readonly attempts: number
  /**
   * The metadata of the message. For a message of a foreign producer, the adapter makes it from the broker's id and
   * timestamp, alike on every delivery. By `id` and `firstPublished`, the core recognises a redelivered message whose
   * ack was lost.
   */
  readonly metadata: Metadata
  /** Whether the broker has delivered this copy before; `undefined` if unknown. */
  readonly redelivered?: boolean | undefined
  /**
   * The broker's own facts of this delivery, under the broker's name, frozen. Implement it as a getter of a class: few
   * handlers read it, and a getter of each object is slow. Copies do not have these facts, except those that the
   * adapter adds to them. Default: none.
   */
  readonly native?: Native | undefined
  /**
   * The message's group, if the broker keeps the order of messages within groups. The handler gets the messages of a
   * group in the order of their deliveries, one batch or single message at a time, and no message is acked before the
   * earlier messages of its group. When a message is retried, the later messages of its group are released, unless
   * every retry is a copy. The broker MUST deliver the later messages after the retried one, and no message of the
   * group during the delay. `maxDeliveries` alone dead-letters no message of a group, because each message is
   * redelivered whenever an earlier one is. Default: no group.
   */
  readonly group?: string | undefined
  /** The message's place in the order of its key. Copies get it from here. Default: the message has no key. */
  readonly place?: Place | undefined
  /** Whose message it is: consumers take those of each value in turn. Copies keep it. Default: none. */
  readonly fairBy?: string | undefined
  /**
   * Why the adapter could not read the message. The message is then dead-lettered as undecodable, with this error and
   * the bytes of `body`; no handler sees it. An adapter MUST set `unreadable` instead of throwing: a thrown error would
   * end the process. Default: the message was read.
   */
  readonly unreadable?: ErrorSummary | undefined
  /** The adapter's own handle for settling; opaque to the core. */
  readonly receipt: unknown
}

const none: Native = Object.freeze({})

/** Returns the broker's own facts of a delivery; an empty object if there are none. */
export const nativeOf = ({ native }: Delivery): Native => native ?? none
