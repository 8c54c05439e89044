/** Messages and their headers, as a handler sees them. */

/** Text headers. Names are case-sensitive. `requeue` is reserved for `Metadata`, and adapters reserve further names. */
export type Headers = Readonly<Record<string, string>>

/**
 * Facts and options of single brokers, by broker name, such as the properties of AMQP. The broker's adapter makes and
 * reads them: `RabbitMqNative.of(message)`. Each adapter ignores those of other brokers, so a message may have those of
 * several brokers.
 */
export type Native = Readonly<Record<string, unknown>>

/** A message with a decoded body. */
export interface Message<A> {
  /** The message's id. It stays the same in retries, dead letters and redrives. */
  readonly id: string
  /** The body as decoded by the queue's codec or schema; by default unchecked JSON. */
  readonly body: A
  /** The message's headers, frozen: changing them throws in strict code. */
  readonly headers: Headers
  /** When the message was first published, in epoch milliseconds. */
  readonly timestamp: number
  /**
   * How often this message was delivered, this time included: 1 on the first delivery. The number is never too low.
   * After a crash it may be too high, because deliveries that reached no handler also count.
   */
  readonly attempts: number
  /** The key whose messages the broker delivers in order. Default: none. */
  readonly key?: string | undefined
  /** The sender's `fairBy`. Default: none. */
  readonly fairBy?: string | undefined
  /** The broker's own facts of this delivery, frozen. Default: none. */
  readonly native: Native
}
