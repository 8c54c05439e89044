/**
 * Lanes: separate channels for publications. Each exchange has a lane, each user id of an exchange has one, and so have bodies that
 * may be too large. The server closes a channel because of a missing or forbidden exchange, a wrong user id or a large body; then
 * only one lane is affected. A lane parks publications until its channel can write them.
 */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Publication } from "../client.ts"
import { isOfHeaders } from "../toBrokerError.ts"
import type { Channels, Confirms } from "./confirms.ts"

/** The lanes of a publisher by their exchanges and user ids. */
export interface Lanes<A> {
  /** Writes an item now, or when its lane has a channel that accepts publications. */
  readonly begin: (item: A) => void
  /** Opens the channel of an exchange before its first item. */
  readonly open: (exchange: string) => void
  /** Ends an item, parked or not, with this error if there is one. */
  readonly leave: (item: A, error: BrokerError.BrokerError | undefined) => void
  /** Removes and returns all parked items. */
  readonly drain: () => ReadonlyArray<A>
}

/** A publication. Only this module changes where it is parked. */
interface Item<A> {
  readonly publication: Publication
  parkedIn: Set<A> | undefined
}

interface Lane<A> {
  readonly channels: Channels
  readonly parked: Set<A>
  isOpening: boolean
}

/** Which user ids the server accepts depends on the login and on the user's tags, so it is not known before. */
const nameOf = ({ exchange, options: { userId } }: Publication): string =>
  userId === undefined ? exchange : `${exchange}\nof ${String(userId)}`

/** Has no lane at first. */
export const make = <A extends Item<A>>(env: {
  readonly channels: () => Channels
  /** Each lane is a channel of the server. Further exchanges and user ids share the last lane. */
  readonly maxLanes: () => number
  /** Writes an item. `wasParked`: it waited for the channel. */
  readonly write: (channel: Confirms, item: A, wasParked: boolean) => void
  /** The server refused the channel of these items; none was written. */
  readonly fail: (item: A, error: BrokerError.BrokerError) => void
  /** Runs an effect until the publisher is closed. */
  readonly fork: (effect: Effect.Effect<void>) => void
}): Lanes<A> => {
  const { fail, fork, maxLanes, write } = env
  const open = (): Lane<A> => ({ channels: env.channels(), parked: new Set(), isOpening: false })
  const lanes = new Map<string, Lane<A>>()
  const large = open()
  let last = large
  /** Bytes of the smallest body that was refused for its size. */
  let refusedSize = Number.POSITIVE_INFINITY

  const laneTo = (name: string): Lane<A> => {
    const known = lanes.get(name)
    if (known !== undefined) return known
    if (lanes.size >= maxLanes()) return last
    last = open()
    lanes.set(name, last)
    return last
  }

  const unpark = ({ channels, parked }: Lane<A>): void => {
    const channel = channels.current()
    if (channel === undefined) return
    for (const item of parked) {
      parked.delete(item)
      write(channel, item, true)
    }
  }

  /** Waits for a channel and writes all parked items. Fails them if the server refuses the channel. */
  const opening = (lane: Lane<A>) =>
    Effect.gen(function* () {
      do {
        const opened = yield* Effect.result(lane.channels.ready)
        if (Result.isSuccess(opened)) unpark(lane)
        // Their failure makes room for other items, which are parked meanwhile and get another attempt.
        else [...lane.parked].forEach((item) => fail(item, opened.failure))
      } while (lane.parked.size > 0)
      lane.isOpening = false
    })

  const ready = (lane: Lane<A>): void => {
    if (lane.isOpening) return
    lane.isOpening = true
    fork(opening(lane))
  }

  return {
    begin: (item) => {
      const { publication } = item
      const lane = publication.content.length >= refusedSize ? large : laneTo(nameOf(publication))
      // Items that were parked before go first.
      const channel = lane.parked.size === 0 ? lane.channels.current() : undefined
      if (channel !== undefined) return write(channel, item, false)
      lane.parked.add(item)
      item.parkedIn = lane.parked
      ready(lane)
    },
    open: (exchange) => ready(laneTo(exchange)),
    leave: (item, error) => {
      item.parkedIn?.delete(item)
      if (error?.reason === "BodyTooLarge" && !isOfHeaders(error))
        refusedSize = Math.min(refusedSize, item.publication.content.length)
    },
    drain: () =>
      [large, ...lanes.values()].flatMap(({ parked }) => {
        const drained = [...parked]
        parked.clear()
        return drained
      })
  }
}
