/**
 * Outgoing messages, and the rules for copies of a delivery.
 *
 * The attempts and times of a copy are decided here, because they are the same on every broker. An adapter only turns an
 * `Outgoing` into its wire format.
 */
import type { Delay } from "./Delay.ts"
import type { Delivery } from "./Delivery.ts"
import * as Lane from "./Lane.ts"
import type { Headers, Native } from "./Message.ts"
import * as Metadata from "./Metadata.ts"
import type { Settlement } from "./Settlement.ts"

/** A message to publish. */
export interface Outgoing {
  readonly queue: string
  readonly body: Uint8Array
  /** The headers without the metadata, which the adapter adds. */
  readonly headers: Headers
  /**
   * The program's options for single brokers, by broker name. An adapter checks the options of its broker and ignores
   * the others. A copy has none, because it goes only to its queue. Default: none.
   */
  readonly native?: Native | undefined
  /** The time from now before which the message must not be delivered, in milliseconds. */
  readonly delay: Delay
  readonly metadata: Metadata.Metadata
  /** The message's place in the order of its key. Only for a broker with `keyedOrder`. Default: the message has no key. */
  readonly place?: Lane.Place | undefined
  /** Whose message it is: consumers take those of each value in turn. Only for a broker with `fairShares`. Default: none. */
  readonly fairBy?: string | undefined
  /**
   * Whether a missing queue may be created. If `false`, the publish fails with `QueueMissing` or `Unroutable`, even if the
   * queue was deleted since it was last used. Default: true.
   */
  readonly create?: boolean | undefined
}

const dueAt = (delay: Delay, now: number): number => (delay === 0 ? 0 : now + delay)

/** A message that is published for the first time. A class: see `ShortList`. */
class First implements Outgoing {
  readonly queue: string
  readonly body: Uint8Array
  readonly headers: Headers
  readonly native: Native | undefined
  readonly place: Lane.Place | undefined
  readonly fairBy: string | undefined
  readonly delay: Delay
  readonly metadata: Metadata.Metadata

  constructor({ body, delay, fairBy, headers, id, key, native, queue }: Parameters<typeof make>[0], now: number) {
    this.queue = queue
    this.body = body
    this.headers = headers
    this.native = native
    this.place = key === undefined ? undefined : { key, queue }
    this.fairBy = fairBy
    this.delay = delay
    this.metadata = Metadata.make(id, now, dueAt(delay, now))
  }
}

/** Makes a message that is published for the first time. `delay` is in milliseconds, `now` in epoch milliseconds. */
export const make = (
  message: {
    readonly queue: string
    readonly id: string
    readonly body: Uint8Array
    readonly headers: Headers
    readonly delay: Delay
    readonly native?: Native | undefined
    readonly key?: string | undefined
    readonly fairBy?: string | undefined
  },
  now: number
): Outgoing => new First(message, now)

/** The parts of a delivery that its copies have. */
type Original = Pick<Delivery, "body" | "fairBy" | "headers" | "metadata" | "place">

interface Copy extends Pick<Outgoing, "queue" | "delay" | "metadata" | "place"> {
  readonly cut?: Metadata.Truncation | undefined
}

const copy = ({ body, fairBy, headers }: Original, { cut, delay, metadata, place, queue }: Copy): Outgoing => ({
  queue,
  body,
  headers,
  ...(place === undefined ? undefined : { place }),
  ...(fairBy === undefined ? undefined : { fairBy }),
  delay,
  metadata: Metadata.reduce(metadata, cut)
})

/**
 * Returns the metadata from which a copy starts. A dead letter that is back in its queue of origin was moved by another
 * tool (a shovel, a move task): it counts as redriven, since nothing else would end such a loop, and no longer belongs to
 * an earlier redrive.
 */
const metadataAt = (queue: string, { metadata }: Delivery): Metadata.Metadata => {
  if (metadata.deadLetter?.queue !== queue) return metadata
  const { operation: _, ...rest } = metadata
  return { ...rest, redrives: metadata.redrives + 1, deadLetter: undefined }
}

/** Makes the copy for a retry, if the broker cannot delay the original. The attempt counts. `now` is in epoch ms. */
export const retry = (
  delivery: Delivery,
  { cut, delay, ...settlement }: Extract<Settlement, { _tag: "Retry" }>,
  queue: string,
  now: number
): Outgoing =>
  copy(delivery, {
    queue,
    delay,
    cut,
    place: delivery.place,
    metadata: {
      ...metadataAt(queue, delivery),
      attempts: delivery.attempts,
      notBefore: dueAt(delay, now),
      history: historyAfter(delivery, { ...settlement, delay }, now)
    }
  })

/** Returns the history of a delivery with its failed attempt. `now` is in epoch milliseconds. */
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
 * Makes the next copy of a message whose delay takes several copies. The copy uses up no attempt. `delay` is in ms,
 * `now` in epoch ms.
 */
export const hop = (
  delivery: Delivery,
  { cut, delay }: Pick<Extract<Settlement, { _tag: "Release" }>, "delay" | "cut">,
  queue: string,
  now: number
): Outgoing =>
  copy(delivery, {
    queue,
    delay,
    cut,
    place: delivery.place,
    metadata: {
      ...metadataAt(queue, delivery),
      attempts: delivery.attempts - 1,
      notBefore: dueAt(delay, now)
    }
  })

/**
 * Makes the dead letter of a delivery from the queue `origin`. A parked letter keeps its place among the messages of its key.
 * `now` is in epoch milliseconds.
 */
export const deadLetter = (
  delivery: Delivery,
  { cut, error, parks, queue, reason }: Extract<Settlement, { _tag: "DeadLetter" }>,
  origin: string,
  now: number
): Outgoing =>
  copy(delivery, {
    queue,
    delay: 0,
    cut,
    place: parks === true ? delivery.place : Lane.left(delivery.place),
    metadata: {
      ...metadataAt(origin, delivery),
      // The dead letter has no deliveries in its new queue yet; `deadLetter` has its former attempts.
      attempts: 0,
      notBefore: 0,
      deadLetter: {
        queue: origin,
        attempts: delivery.attempts,
        reason,
        at: now,
        error: Metadata.truncateError(error)
      }
    }
  })

/**
 * Makes the copy of a redriven dead letter: attempts restart, `redrives` grows, history stays. Among the messages of its key, the
 * copy has the letter's place. `operation` names the redrive.
 */
export const redrive = (letter: Original, queue: string, operation?: string): Outgoing =>
  copy(letter, {
    queue,
    delay: 0,
    place: Lane.entered(letter.place, queue),
    metadata: {
      ...letter.metadata,
      ...(operation === undefined ? {} : { operation }),
      attempts: 0,
      notBefore: 0,
      redrives: letter.metadata.redrives + 1,
      deadLetter: undefined
    }
  })

/** Makes the copy of a dead letter that is moved to another queue unchanged. A parked letter keeps its place. */
export const move = (letter: Original, queue: string): Outgoing =>
  copy(letter, { queue, delay: 0, place: letter.place, metadata: letter.metadata })
