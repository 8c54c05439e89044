/**
 * Lanes: the messages of one queue with one key, in the order in which they were sent.
 *
 * A broker with the capability `keyedOrder` delivers only the first message of a lane. The next message follows when the first
 * one leaves the lane: when it is acked, dropped, dead-lettered or removed. A retry keeps its place, and so does a delayed
 * message. A dead letter that is parked keeps its place too, although it is in another queue.
 */

/** The place of a message in the order of its key. */
export interface Place {
  /** The key that the sender gave. Copies keep it. */
  readonly key: string
  /** The queue of the lane. `undefined`: the message has left the lane, as most dead letters have. */
  readonly queue?: string | undefined
  /** The position in the lane, lowest first. Copies keep it. Default: the broker puts the message after all others. */
  readonly position?: number | undefined
  /** How many later messages of its key it holds up. Only browsers report it. Default: unknown. */
  readonly blocks?: number | undefined
}

/** Returns the place of a message that has left its lane; `undefined` if it has no key. */
export const left = (place: Place | undefined): Place | undefined =>
  place && { key: place.key, position: place.position }

/** Returns the place of a message that enters the lane of a queue, at its position of before; `undefined` if it has no key. */
export const entered = (place: Place | undefined, queue: string): Place | undefined => place && { ...place, queue }
