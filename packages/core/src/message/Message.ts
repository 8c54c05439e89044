/** What a producer wrote, as a handler sees it. */

/** Text headers. Names are case-sensitive; `requeue` is reserved for `Metadata`. */
export type Headers = Readonly<Record<string, string>>

/** A message with a decoded body. */
export interface Message<A> {
  /** Stable over every retry, hop, dead letter and redrive. */
  readonly id: string
  readonly body: A
  readonly headers: Headers
  /** When the message was first published, in milliseconds since the epoch. */
  readonly timestamp: number
  /**
   * Deliveries of this message so far, this one included: 1 on the first. It may be over-counted after a crash (a
   * delivery that never reached a handler counts), never under-counted.
   */
  readonly attempts: number
}
