/** Deliveries: an adapter gives the core one each time the broker hands a message to this consumer. */
import type { Headers, Native } from "./Message.ts"
import type { ErrorSummary, Metadata } from "./Metadata.ts"

/** One handover of a message to one consumer. */
export interface Delivery {
  /** The bytes as they were published. */
  readonly body: Uint8Array
  /** The message's headers, frozen, without the broker's own and the metadata. Handlers see them, and copies carry them. */
  readonly headers: Headers
  /** Deliveries of this message so far, with this one: the metadata's attempts plus the broker's count for this copy. */
  readonly attempts: number
  /**
   * The metadata of the message. For a foreign message, the adapter makes it from the broker's id and timestamp, the same
   * on every delivery: the core recognises a message whose ack was lost by `id` and `firstPublished`.
   */
  readonly metadata: Metadata
  /** Whether the broker has delivered this copy before; `undefined` if unknown. */
  readonly redelivered?: boolean | undefined
  /**
   * The broker's own facts of this delivery, under the broker's name, frozen. Make it a getter of a class: few handlers
   * read it, and a getter per object is slow. Copies do not carry it: the adapter keeps what a copy must have. Default:
   * none.
   */
  readonly native?: Native | undefined
  /**
   * The group in whose order the message is handled, if the broker orders groups. The handler gets its messages in the
   * order of their deliveries, one batch or single message at a time, and none is acked before those ahead of it. When one
   * is retried, those after it are released, unless every retry is a copy. The broker MUST deliver these after it, and
   * nothing of the group while it waits for its delay. The number of deliveries alone dead-letters none of them, because
   * each is delivered as often as those ahead of it. Default: no group.
   */
  readonly group?: string | undefined
  /**
   * Why the adapter could not read the message. It is dead-lettered as undecodable, with this error and the bytes of
   * `body`; no handler sees it. An adapter MUST set it instead of throwing, which would end the process. Default: the
   * message was read.
   */
  readonly unreadable?: ErrorSummary | undefined
  /** The adapter's own handle for settling; opaque to the core. */
  readonly receipt: unknown
}

const none: Native = Object.freeze({})

/** Returns the broker's own facts of a delivery; an empty object if there are none. */
export const nativeOf = ({ native }: Delivery): Native => native ?? none
