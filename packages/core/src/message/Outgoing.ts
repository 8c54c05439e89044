/**
 * A message on its way to a broker, and the rules by which a copy of a delivery is made.
 *
 * A copy is published, confirmed, and only then is its original settled. Which attempts and times a copy carries is the
 * same on every broker and stands here; an adapter only turns an `Outgoing` into its wire format.
 */
import type { Delay } from "./Delay.ts"
import type { Delivery } from "./Delivery.ts"
import type { Headers } from "./Message.ts"
import * as Metadata from "./Metadata.ts"
import type { Settlement } from "./Settlement.ts"

export interface Outgoing {
  readonly queue: string
  readonly body: Uint8Array
  readonly headers: Headers
  /** Milliseconds from now until it may be delivered. */
  readonly delay: Delay
  readonly metadata: Metadata.Metadata
}

const dueAt = (delay: Delay, now: number): number => (delay === 0 ? 0 : now + delay)

/** A message that is published for the first time. `now` is in milliseconds since the epoch. */
export const make = (
  message: {
    readonly queue: string
    readonly id: string
    readonly body: Uint8Array
    readonly headers: Headers
    readonly delay: Delay
  },
  now: number
): Outgoing => ({
  queue: message.queue,
  body: message.body,
  headers: message.headers,
  delay: message.delay,
  metadata: Metadata.make(message.id, now, dueAt(message.delay, now))
})

const copy = (delivery: Delivery, queue: string, delay: Delay, metadata: Metadata.Metadata): Outgoing => ({
  queue,
  body: delivery.body,
  headers: delivery.headers,
  delay,
  metadata
})

/**
 * What a copy of a delivery from this queue starts from. A dead letter that is in the queue it came from was moved there
 * by somebody else's tool (a shovel, a move task): it is redriven, and counted as such, else nothing would guard against
 * a loop.
 */
const metadataAt = (queue: string, { metadata }: Delivery): Metadata.Metadata =>
  metadata.deadLetter?.queue === queue
    ? { ...metadata, redrives: metadata.redrives + 1, deadLetter: undefined }
    : metadata

/**
 * The copy that a retry becomes where the broker cannot delay the original: the attempt just made is used up. `queue` is
 * the one that the delivery came from.
 */
export const retry = (
  delivery: Delivery,
  settlement: Extract<Settlement, { _tag: "Retry" }>,
  queue: string,
  now: number
): Outgoing =>
  copy(delivery, queue, settlement.delay, {
    ...metadataAt(queue, delivery),
    attempts: delivery.attempts,
    notBefore: dueAt(settlement.delay, now),
    history: historyAfter(delivery, settlement, now)
  })

/** The history of a delivery whose attempt failed and is retried. */
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
 * The copy that a hop of a long delay becomes: this delivery did not reach a handler, so no attempt is used up. `queue`
 * is the one that the delivery came from.
 */
export const hop = (delivery: Delivery, queue: string, delay: Delay, now: number): Outgoing =>
  copy(delivery, queue, delay, {
    ...metadataAt(queue, delivery),
    attempts: delivery.attempts - 1,
    notBefore: dueAt(delay, now)
  })

/** The dead letter of a delivery. `origin` is the queue it was consumed from. */
export const deadLetter = (
  delivery: Delivery,
  settlement: Extract<Settlement, { _tag: "DeadLetter" }>,
  origin: string,
  now: number
): Outgoing =>
  copy(delivery, settlement.queue, 0, {
    ...metadataAt(origin, delivery),
    // In its new queue the letter is delivered for the first time; what it went through stands in `deadLetter`.
    attempts: 0,
    notBefore: 0,
    deadLetter: {
      queue: origin,
      attempts: delivery.attempts,
      reason: settlement.reason,
      at: now,
      error: settlement.error
    }
  })

/** A dead letter sent back to work: attempts start again at 1, the redrive is counted, and the history stays. */
export const redrive = (delivery: Delivery, queue: string): Outgoing =>
  copy(delivery, queue, 0, {
    ...delivery.metadata,
    attempts: 0,
    notBefore: 0,
    redrives: delivery.metadata.redrives + 1,
    deadLetter: undefined
  })
