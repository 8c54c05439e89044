/** Dead letters as programs see them. */
import { Delivery, type Message } from "@requeue/core"
import { Metadata, OwnBytes } from "@requeue/core/port"

/** A dead letter: a copy. Writing into it changes no message. */
export interface DeadLetter {
  /** The message's id. */
  readonly id: string
  /** The bytes as they were published. */
  readonly body: Uint8Array
  readonly headers: Message.Headers
  /** The broker's own facts of this letter, as of any delivery: `RabbitMqNative.of(letter)`. */
  readonly native: Message.Native
  /**
   * When the message was first published, in milliseconds since the epoch. Where nobody knows, it is the time of this look,
   * and `Metadata.publishedAt(metadata)` is `undefined`.
   */
  readonly firstPublished: number
  /** How often it has been redriven before. */
  readonly redrives: number
  /** The operation that redrove it last, as its report names it. Left out when none has. */
  readonly operation?: string
  /** The last failed attempts, newest last. */
  readonly history: ReadonlyArray<Metadata.Attempt>
  /** All that Requeue keeps of the message, the fields here among it: what an exact copy needs. */
  readonly metadata: Metadata.Metadata
  /** How Requeue gave the message up; `undefined` for a message that came here in another way. */
  readonly origin:
    | {
        /** The queue that it was consumed from. */
        readonly queue: string
        /** The deliveries that it had there. */
        readonly attempts: number
        readonly reason: Metadata.Reason
        /** When it was given up, in milliseconds since the epoch. */
        readonly at: number
        /** The error of the last attempt. */
        readonly error: Metadata.ErrorSummary
      }
    | undefined
}

/** Copies the metadata, so that nothing of it is shared. */
const copied = (metadata: Metadata.Metadata): Metadata.Metadata => {
  const { deadLetter, history } = metadata
  return {
    ...metadata,
    history: history.map((attempt) => ({ ...attempt })),
    deadLetter: deadLetter && { ...deadLetter, error: { ...deadLetter.error } }
  }
}

/** The delivery as a dead letter that shares nothing with it. Headers and native facts are frozen. */
export const fromDelivery = (delivery: Delivery.Delivery): DeadLetter => {
  const { headers } = delivery
  const metadata = copied(delivery.metadata)
  let body: Uint8Array | undefined
  return {
    id: metadata.id,
    /** Copied when it is read: most filters and groups do not read bodies. */
    get body() {
      return (body ??= OwnBytes.copy(delivery.body))
    },
    headers,
    get native() {
      return Delivery.nativeOf(delivery)
    },
    firstPublished: metadata.firstPublished,
    redrives: metadata.redrives,
    ...(metadata.operation === undefined ? undefined : { operation: Metadata.operationId(metadata.operation) }),
    history: metadata.history,
    metadata,
    origin: metadata.deadLetter
  }
}
