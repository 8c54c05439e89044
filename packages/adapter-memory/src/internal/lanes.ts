/** Lanes: the order of messages with a key. Of each lane, one message is in a queue's order, and the others are blocked. */
import { Heap, type Lane } from "@requeue/core/port"

/** The part of a message that its lane needs. */
interface Member {
  place: Lane.Place | undefined
}

/** The part of a queue that has blocked messages. */
interface Holder<M> {
  readonly behind: Set<M>
}

/** All lanes of a broker. */
export interface Lanes<M extends Member, Q extends Holder<M>> {
  /** Puts a message of a queue into its lane. Returns whether it is the first one; else it is blocked. */
  readonly enter: (queue: Q, message: M) => boolean
  /** Removes the first message of a lane. The next one is freed. */
  readonly leave: (message: M) => void
  /** Returns how many messages the first message of a lane blocks; `undefined` if the message is in no lane. */
  readonly blocks: (message: M) => number | undefined
}

const laneOf = ({ place }: Member): string | undefined =>
  place?.queue === undefined ? undefined : JSON.stringify([place.queue, place.key])

/** `free` delivers a message that was blocked. */
export const make = <M extends Member, Q extends Holder<M>>(free: (queue: Q, message: M) => void): Lanes<M, Q> => {
  /** The blocked messages of each lane, which exists while it has a first message. */
  const lanes = new Map<string, Heap.Heap<{ readonly message: M; readonly queue: Q }>>()
  let last = 0

  return {
    enter: (queue, message) => {
      const { place } = message
      if (place === undefined) return true
      const { position = ++last } = place
      message.place = { ...place, position }
      const name = laneOf(message)
      if (name === undefined) return true
      const followers = lanes.get(name)
      if (followers === undefined) {
        lanes.set(name, Heap.make())
        return true
      }
      followers.push(position, { message, queue })
      queue.behind.add(message)
      return false
    },
    leave: (message) => {
      const name = laneOf(message)
      const followers = name === undefined ? undefined : lanes.get(name)
      if (name === undefined || followers === undefined) return
      // A purge leaves the messages that it removes in the heap.
      for (let next = followers.pop(); next !== undefined; next = followers.pop()) {
        if (next.queue.behind.delete(next.message)) return free(next.queue, next.message)
      }
      lanes.delete(name)
    },
    blocks: (message) => {
      const name = laneOf(message)
      const followers = name === undefined ? undefined : lanes.get(name)
      followers?.keep(({ message, queue }) => queue.behind.has(message))
      return followers?.size()
    }
  }
}
