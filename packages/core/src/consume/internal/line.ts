/**
 * Messages in a line. Any of them leaves in constant time: when a connection is lost, thousands do. One that leaves from
 * among the others leaves a gap, which goes when it comes to the front.
 */
import type { Item } from "./item.ts"

export interface Line {
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

/** Gaps in front that may stay, so that a short line moves nobody. */
const spare = 64

export const make = (): Line => {
  const places: Array<Item | undefined> = []
  /** How many places were removed: the number of the first that is left. */
  let removed = 0
  /** Gaps in front. */
  let gaps = 0
  let size = 0

  /** Removes the gaps in front as soon as they are more than what is behind them, so that each costs one move at most. */
  const tidy = (): void => {
    while (gaps < places.length && places[gaps] === undefined) gaps++
    if (gaps < spare || gaps * 2 <= places.length) return
    places.splice(0, gaps)
    removed += gaps
    gaps = 0
  }

  const leave = (index: number): void => {
    places[index] = undefined
    size--
  }

  return {
    size: () => size,
    all: () => places.filter((item) => item !== undefined),
    first: () => places[gaps],
    push: (item) => {
      item.number = removed + places.push(item) - 1
      size++
    },
    delete: (item) => {
      const index = item.number - removed
      if (places[index] !== item) return
      leave(index)
      tidy()
    },
    take: (count) => {
      const taken: Array<Item> = []
      for (let index = gaps; index < places.length && taken.length < count; index++) {
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
