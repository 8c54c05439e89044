/**
 * A queue of messages. Removing any message takes constant time, because a lost connection removes thousands. A removed
 * message leaves a gap.
 */
import type { Item } from "./item.ts"

export interface WaitQueue {
  readonly size: () => number
  /** Returns all messages, in order of arrival. */
  readonly all: () => ReadonlyArray<Item>
  readonly first: () => Item | undefined
  /** Adds a message that is in no queue. */
  readonly push: (item: Item) => void
  /** Removes a message, if it is in this queue. */
  readonly delete: (item: Item) => void
  /** Removes and returns the first `count` messages, or all if there are fewer. */
  readonly take: (count: number) => ReadonlyArray<Item>
}

/** A queue of at most this many places keeps its gaps. */
const spare = 64

export const make = (): WaitQueue => {
  let places: Array<Item | undefined> = []
  /** The index of the first message. */
  let front = 0
  let size = 0

  /** Closes the gaps when they outnumber the messages, so each gap costs one move at most. */
  const tidy = (): void => {
    while (front < places.length && places[front] === undefined) front++
    if (places.length <= spare || places.length <= 2 * size) return
    const left = places.filter((item) => item !== undefined)
    for (const [index, item] of left.entries()) item.number = index
    places = left
    front = 0
  }

  const leave = (index: number): void => {
    places[index] = undefined
    size--
  }

  return {
    size: () => size,
    all: () => places.filter((item) => item !== undefined),
    first: () => places[front],
    push: (item) => {
      item.number = places.push(item) - 1
      size++
    },
    delete: (item) => {
      if (places[item.number] !== item) return
      leave(item.number)
      tidy()
    },
    take: (count) => {
      const first = places[front]
      // Fast path: most consumers take one message at a time.
      if (count === 1 && first !== undefined) {
        leave(front)
        tidy()
        return [first]
      }
      const taken: Array<Item> = []
      for (let index = front; index < places.length && taken.length < count; index++) {
        const item = places[index]
        if (item === undefined) continue
        leave(index)
        taken.push(item)
      }
      tidy()
      return taken
    }
  }
}
