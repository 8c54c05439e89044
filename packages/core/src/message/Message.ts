/** Messages and their headers, as a handler sees them. */

/** Text headers. Names are case-sensitive; `requeue` is reserved for `Metadata`, and further names by the adapters. */
export type Headers = Readonly<Record<string, string>>

/**
 * Facts and options of single brokers, by broker name, such as the properties of AMQP. The broker's adapter makes and reads
 * them: `RabbitMqNative.of(message)`. Adapters ignore those of other brokers, so a message may carry several.
 */
export type Native = Readonly<Record<string, unknown>>

/** A message with a decoded body. */
export interface Message<A> {
  /** The message's id, the same across retries, hops, dead letters and redrives. */
  readonly id: string
  /** The body as decoded by the queue's codec or schema; by default unchecked JSON. */
  readonly body: A
  /** Frozen: changing them throws in strict code. */
  readonly headers: Headers
  /** When the message was first published, in epoch milliseconds. */
  readonly timestamp: number
  /**
   * Deliveries of this message so far, this one included: 1 on the first. It is never too low. After a crash it may be too
   * high, because deliveries that never reached a handler count too.
   */
  readonly attempts: number
  /** The broker's own facts of this delivery, frozen. Default: none. */
  readonly native: Native
}
