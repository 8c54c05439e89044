/** Dead letters as programs see them. */
import { Delivery, type Message } from "@requeue/core"
import { Metadata, OwnBytes } from "@requeue/core/port"

/** A copy of a dead letter. Changes to the copy do not change the message. */
export interface DeadLetter {
  /** The message's id. */
  readonly id: string
  /** The bytes as they were published. */
  readonly body: Uint8Array
  readonly headers: Message.Headers
  /** The key of the message; absent if it has none. */
  readonly key?: string
  /** The sender's `fairBy`; absent if there is none. */
  readonly fairBy?: string
  /** How many later messages of its key the parked letter holds up; absent if it holds up none. */
  readonly blocks?: number
  /**
   * The broker's native facts of this letter. Read them with the adapter's module, for example `RabbitMqNative.of(letter)`.
   */
  readonly native: Message.Native
  /**
   * When the message was first published, in milliseconds since the epoch. If that is unknown, it is the time of browsing,
   * and `Metadata.publishedAt(metadata)` is `undefined`.
   */
  readonly firstPublished: number
  /** How often the letter has been redriven. */
  readonly redrives: number
  /** The id of the last operation that redrove the letter; absent if it was never redriven. */
  readonly operation?: string
  /** The last failed attempts, newest last. */
  readonly history: ReadonlyArray<Metadata.Attempt>
  /** All metadata of the message, which an exact copy needs. It includes the other fields of the letter. */
  readonly metadata: Metadata.Metadata
  /** How Requeue dead-lettered the message; `undefined` if another program put it into the queue. */
  readonly origin:
    | {
        /** The queue that the message was consumed from. */
        readonly queue: string
        /** The number of deliveries from that queue. */
        readonly attempts: number
        readonly reason: Metadata.Reason
        /** When the message was dead-lettered, in milliseconds since the epoch. */
        readonly at: number
        /** The error of the last attempt. */
        readonly error: Metadata.ErrorSummary
      }
    | undefined
}

/** Makes a deep copy of the metadata. */
const copied = (metadata: Metadata.Metadata): Metadata.Metadata => {
  const { deadLetter, history } = metadata
  return {
    ...metadata,
    history: history.map((attempt) => ({ ...attempt })),
    deadLetter: deadLetter && { ...deadLetter, error: { ...deadLetter.error } }
  }
}

/** Returns a delivery as a dead letter, which is a deep copy. Headers and native facts are frozen. */
export const fromDelivery = (delivery: Delivery.Delivery): DeadLetter => {
  const { fairBy, headers, place } = delivery
  const metadata = copied(delivery.metadata)
  let body: Uint8Array | undefined
  return {
    id: metadata.id,
    /** Copied lazily: most filters and groups do not read bodies. */
    get body() {
      return (body ??= OwnBytes.copy(delivery.body))
    },
    headers,
    ...(place === undefined ? undefined : { key: place.key }),
    ...(fairBy === undefined ? undefined : { fairBy }),
    ...(place?.blocks === undefined ? undefined : { blocks: place.blocks }),
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
