/** Messages and their headers, as a handler sees them. */

/** Text headers. Names are case-sensitive; `requeue` is reserved for `Metadata`, and further names by the adapters. */
export type Headers = Readonly<Record<string, string>>

/**
 * Facts that only one broker has, such as the properties of AMQP, under the broker's name. The broker's adapter makes and
 * reads them: `RabbitMqNative.of(message)`. It passes over those of other brokers, so that a message that is sent may carry
 * those of several.
 */
export type Native = Readonly<Record<string, unknown>>

/** A message with a decoded body. */
export interface Message<A> {
  /** The message's id, which stays the same over every retry, hop, dead letter and redrive. */
  readonly id: string
  /** The body as the queue's codec, or schema, has made it of the bytes. Without either, it is JSON that nobody has checked. */
  readonly body: A
  /** Frozen: an attempt to change them throws in strict code. */
  readonly headers: Headers
  /** When the message was first published, in milliseconds since the epoch. */
  readonly timestamp: number
  /**
   * Deliveries of this message so far, this one included: 1 on the first. After a crash the count may be too high,
   * because a delivery that never reached a handler counts too; it is never too low.
   */
  readonly attempts: number
  /** The broker's own facts of this delivery, frozen. Default: none, for a broker that has none to tell. */
  readonly native: Native
}
