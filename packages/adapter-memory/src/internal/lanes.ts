/** Lanes: the order of messages with a key. Of each lane, one message is in a queue's order, and the others are blocked. */
import { Heap } from "@requeue/core/port"
import type { Queue, StoredMessage } from "./queues.ts"

interface Blocked {
  readonly message: StoredMessage
  readonly queue: Queue
}

/** The blocked messages of one lane. It exists while the lane has a first message. */
type Followers = Heap.Heap<Blocked>

/** All lanes of a broker. */
export interface Lanes {
  /** Puts a message of a queue into its lane. Returns whether it is the first one; else it is blocked. */
  readonly enter: (queue: Queue, message: StoredMessage) => boolean
  /** Removes the first message of a lane. The next one is freed. */
  readonly leave: (message: StoredMessage) => void
  /** Returns how many messages the first message of a lane blocks; `undefined` if the message is in no lane. */
  readonly blocks: (message: StoredMessage) => number | undefined
}

const laneOf = ({ place }: StoredMessage): string | undefined =>
  place?.queue === undefined ? undefined : JSON.stringify([place.queue, place.key])

/** `free` delivers a message that was blocked. */
export const make = (free: (queue: Queue, message: StoredMessage) => void): Lanes => {
  const lanes = new Map<string, Followers>()
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
