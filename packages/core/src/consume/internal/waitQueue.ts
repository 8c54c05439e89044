/**
 * Messages in a line. Any of them leaves in constant time: when a connection is lost, thousands do. One that leaves from
 * among the others leaves a gap.
 */
import type { Item } from "./item.ts"

export interface WaitQueue {
  readonly size: () => number
  /** All of them, in order of arrival. */
  readonly all: () => ReadonlyArray<Item>
  /** The first one; `undefined` when there is none. */
  readonly first: () => Item | undefined
  /** Adds a message that is in no line. */
  readonly push: (item: Item) => void
  /** Removes a message. Does nothing for one that is not in this line. */
  readonly delete: (item: Item) => void
  /** Removes the first ones, so many or all that there are, in order. */
  readonly take: (count: number) => ReadonlyArray<Item>
}

/** Places of which most may be gaps, so that a short line moves nobody. */
const spare = 64

export const make = (): WaitQueue => {
  let places: Array<Item | undefined> = []
  /** The place of the first one, behind the gaps in front. */
  let front = 0
  let size = 0

  /** Closes the gaps as soon as they are more than the messages, so that each of them costs one move at most. */
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
      // One at a time is the way of most consumers. Nothing else stands in front.
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
