/** One handing-out of a message to one consumer: what an adapter gives to the core. */
import type { Headers } from "./Message.ts"
import type { Metadata } from "./Metadata.ts"

export interface Delivery {
  /** The bytes as they were published. */
  readonly body: Uint8Array
  readonly headers: Headers
  /**
   * Deliveries of this message so far, this one included: the metadata's attempts plus the broker's own count of this
   * copy's deliveries.
   */
  readonly attempts: number
  /**
   * Of a foreign message: made by the adapter from what the broker knows (native id, timestamp), so that it is the same
   * on every delivery: by `id` and `firstPublished` the core knows a message again whose ack was lost.
   */
  readonly metadata: Metadata
  /** The adapter's own handle for settling. Opaque to the core. */
  readonly receipt: unknown
}
