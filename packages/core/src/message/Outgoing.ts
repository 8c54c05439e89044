/**
 * Messages on their way to a broker, and the rules by which a copy of a delivery is made.
 *
 * The attempts and times that a copy carries are the same on every broker, so that they are decided here; an adapter only
 * turns an `Outgoing` into its wire format. It settles the original only after the broker has confirmed the copy.
 */
import type { Delay } from "./Delay.ts"
import type { Delivery } from "./Delivery.ts"
import type { Headers, Native } from "./Message.ts"
import * as Metadata from "./Metadata.ts"
import type { Settlement } from "./Settlement.ts"

/** A message to publish. */
export interface Outgoing {
  /** The queue to publish to. */
  readonly queue: string
  readonly body: Uint8Array
  /** The headers, without the metadata: the adapter adds it. */
  readonly headers: Headers
  /**
   * The program's wishes to this broker and to others, each under the broker's name. An adapter checks its own, and passes
   * over the others. A copy has none: it goes to its queue, and nowhere else. Default: none.
   */
  readonly native?: Native | undefined
  /** Milliseconds from now before which the message must not be delivered. */
  readonly delay: Delay
  readonly metadata: Metadata.Metadata
  /**
   * Whether its queue may be made where it is missing. With `false`, the publish fails with `QueueMissing` or `Unroutable`
   * instead, also where the queue was deleted since it was last used. Default: true.
   */
  readonly create?: boolean | undefined
}

const dueAt = (delay: Delay, now: number): number => (delay === 0 ? 0 : now + delay)

/**
 * A message that is published for the first time. `delay` is in milliseconds, `now` in milliseconds since the epoch.
 *
 * @example
 * ```ts
 * import { Outgoing } from "@requeue/core/port"
 *
 * const message = { queue: "orders", id: "m1", body: new Uint8Array(), headers: {}, delay: 5000 }
 * Outgoing.make(message, 1_700_000_000_000).metadata.notBefore // => 1700000005000
 * ```
 */
export const make = (
  message: {
    readonly queue: string
    readonly id: string
    readonly body: Uint8Array
    readonly headers: Headers
    readonly delay: Delay
    readonly native?: Native | undefined
  },
  now: number
): Outgoing => ({
  queue: message.queue,
  body: message.body,
  headers: message.headers,
  native: message.native,
  delay: message.delay,
  metadata: Metadata.make(message.id, now, dueAt(message.delay, now))
})

const copy = (
  delivery: Pick<Delivery, "body" | "headers" | "metadata">,
  queue: string,
  delay: Delay,
  metadata: Metadata.Metadata,
  cut?: Metadata.Truncation
): Outgoing => ({
  queue,
  body: delivery.body,
  headers: delivery.headers,
  delay,
  metadata: Metadata.reduce(metadata, cut)
})

/**
 * The metadata from which a copy of a delivery starts. A dead letter that is back in the queue that it came from was
 * moved by another tool (a shovel, a move task): it is counted as redriven, since nothing else would end such a loop. It is
 * no copy of an earlier redrive any more.
 */
const metadataAt = (queue: string, { metadata }: Delivery): Metadata.Metadata => {
  if (metadata.deadLetter?.queue !== queue) return metadata
  const { operation: _, ...rest } = metadata
  return { ...rest, redrives: metadata.redrives + 1, deadLetter: undefined }
}

/**
 * The copy that is published for a retry where the broker cannot delay the original. The attempt that failed counts.
 * `queue` is the queue of the delivery; `now` is in milliseconds since the epoch.
 */
export const retry = (
  delivery: Delivery,
  settlement: Extract<Settlement, { _tag: "Retry" }>,
  queue: string,
  now: number
): Outgoing =>
  copy(
    delivery,
    queue,
    settlement.delay,
    {
      ...metadataAt(queue, delivery),
      attempts: delivery.attempts,
      notBefore: dueAt(settlement.delay, now),
      history: historyAfter(delivery, settlement, now)
    },
    settlement.cut
  )

/** The history of a delivery with the attempt that has just failed. `now` is in milliseconds since the epoch. */
export const historyAfter = (
  delivery: Delivery,
  settlement: Extract<Settlement, { _tag: "Retry" }>,
  now: number
): ReadonlyArray<Metadata.Attempt> =>
  Metadata.remember(delivery.metadata.history, {
    attempt: delivery.attempts,
    at: now,
    error: settlement.error === undefined ? "retry()" : `${settlement.error.name}: ${settlement.error.message}`,
    delay: settlement.delay
  })

/**
 * The copy that is published for the next hop of a long delay. No attempt counts, because the delivery reached no
 * handler. `queue` is the queue of the delivery, `delay` is in milliseconds, `now` in milliseconds since the epoch.
 */
export const hop = (
  delivery: Delivery,
  settlement: Pick<Extract<Settlement, { _tag: "Release" }>, "delay" | "cut">,
  queue: string,
  now: number
): Outgoing =>
  copy(
    delivery,
    queue,
    settlement.delay,
    { ...metadataAt(queue, delivery), attempts: delivery.attempts - 1, notBefore: dueAt(settlement.delay, now) },
    settlement.cut
  )

/** The dead letter of a delivery from the queue `origin`. `now` is in milliseconds since the epoch. */
export const deadLetter = (
  delivery: Delivery,
  settlement: Extract<Settlement, { _tag: "DeadLetter" }>,
  origin: string,
  now: number
): Outgoing =>
  copy(
    delivery,
    settlement.queue,
    0,
    {
      ...metadataAt(origin, delivery),
      // In its new queue, the dead letter is yet to be delivered; `deadLetter` has its former attempts.
      attempts: 0,
      notBefore: 0,
      deadLetter: {
        queue: origin,
        attempts: delivery.attempts,
        reason: settlement.reason,
        at: now,
        error: Metadata.truncateError(settlement.error)
      }
    },
    settlement.cut
  )

/**
 * A dead letter that goes back to work: its attempts start again at 1, the redrive is counted, and the history stays.
 * `operation` names the redrive in the metadata. Default: it has no name.
 */
export const redrive = (
  delivery: Pick<Delivery, "body" | "headers" | "metadata">,
  queue: string,
  operation?: string
): Outgoing =>
  copy(delivery, queue, 0, {
    ...delivery.metadata,
    ...(operation === undefined ? {} : { operation }),
    attempts: 0,
    notBefore: 0,
    redrives: delivery.metadata.redrives + 1,
    deadLetter: undefined
  })
