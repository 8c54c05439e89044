/**
 * Publications by the channels that they are written on: an exchange has one of its own, and so has a user id on the way there,
 * and what is as large as something that was refused for its size. So a server that closes a channel, because of an exchange that
 * is gone or forbidden or a user that it does not take, disturbs no other. What a channel cannot take yet is parked until it can.
 */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Publication } from "../client.ts"
import { isOfHeaders } from "../toBrokerError.ts"
import type { Channels, Confirms } from "./confirms.ts"

/** The lanes of a publisher by their exchanges and user ids. */
export interface Lanes<A> {
  /** Writes an item now, or when its lane has a channel that takes publications. */
  readonly begin: (item: A) => void
  /** Opens the channel of an exchange, so that its first item need not wait for that. */
  readonly open: (exchange: string) => void
  /** An item is over, with this error if there is one, whether it was parked or not. */
  readonly leave: (item: A, error: BrokerError.BrokerError | undefined) => void
  /** Removes all items that are parked, and answers them. */
  readonly drain: () => ReadonlyArray<A>
}

interface Lane<A> {
  readonly channels: Channels
  readonly parked: Set<A>
  isOpening: boolean
}

/** Whose user id the server takes depends on the way of logging in and on the user's tags: nobody can tell before. */
const nameOf = ({ exchange, options: { userId } }: Publication): string =>
  userId === undefined ? exchange : `${exchange}\nof ${String(userId)}`

/** Waits for a channel, and writes all that is parked; fails what is parked when the server refuses the channel. */
const unpark = <A>(
  { channels: { current, ready }, parked }: Lane<A>,
  write: (channel: Confirms, item: A) => void,
  fail: (item: A, error: BrokerError.BrokerError) => void
): Effect.Effect<void> =>
  Effect.map(Effect.result(ready), (opened) => {
    // Their failure makes room for others, which are parked meanwhile and get an attempt of their own.
    if (Result.isFailure(opened)) return [...parked].forEach((item) => fail(item, opened.failure))
    const channel = current()
    if (channel === undefined) return
    for (const item of parked) {
      parked.delete(item)
      write(channel, item)
    }
  })

/** No lane, at first. */
export const make = <A extends { readonly publication: Publication }>(env: {
  readonly channels: () => Channels
  /** Each lane is a channel of the server. Exchanges and user ids beyond so many share the last one. */
  readonly maxLanes: () => number
  /** Writes an item; `wasParked` when it has waited for the channel. */
  readonly write: (channel: Confirms, item: A, wasParked: boolean) => void
  /** The channel of these items was refused: nothing of them was written. */
  readonly fail: (item: A, error: BrokerError.BrokerError) => void
  /** Runs an effect for as long as the publisher lives. */
  readonly fork: (effect: Effect.Effect<void>) => void
}): Lanes<A> => {
  const { channels, fail, fork, maxLanes, write } = env
  const open = (): Lane<A> => ({ channels: channels(), parked: new Set(), isOpening: false })
  const lanes = new Map<string, Lane<A>>()
  const large = open()
  let last = large
  /** Where items are parked. */
  const places = new Map<A, Set<A>>()
  /** Bytes of the smallest body that was refused for its size. */
  let refusedSize = Number.POSITIVE_INFINITY

  const laneOf = ({ publication }: A): Lane<A> =>
    publication.content.length >= refusedSize ? large : laneTo(nameOf(publication))

  const laneTo = (name: string): Lane<A> => {
    const known = lanes.get(name)
    if (known !== undefined) return known
    if (lanes.size >= maxLanes()) return last
    last = open()
    lanes.set(name, last)
    return last
  }

  const unparked = (channel: Confirms, item: A): void => {
    places.delete(item)
    write(channel, item, true)
  }

  const opening = (lane: Lane<A>) =>
    Effect.gen(function* () {
      do yield* unpark(lane, unparked, fail)
      while (lane.parked.size > 0)
      lane.isOpening = false
    })

  const ready = (lane: Lane<A>): void => {
    if (lane.isOpening) return
    lane.isOpening = true
    fork(opening(lane))
  }

  return {
    begin: (item) => {
      const lane = laneOf(item)
      // Those that were here before go first.
      const channel = lane.parked.size === 0 ? lane.channels.current() : undefined
      if (channel !== undefined) return write(channel, item, false)
      lane.parked.add(item)
      places.set(item, lane.parked)
      ready(lane)
    },
    open: (exchange) => ready(laneTo(exchange)),
    leave: (item, error) => {
      if (places.size > 0) {
        places.get(item)?.delete(item)
        places.delete(item)
      }
      if (error?.reason === "BodyTooLarge" && !isOfHeaders(error))
        refusedSize = Math.min(refusedSize, item.publication.content.length)
    },
    drain: () =>
      [large, ...lanes.values()].flatMap(({ parked }) => {
        const drained = [...parked]
        parked.clear()
        places.clear()
        return drained
      })
  }
}
