/**
 * Keeps the order within message groups. A handler has one batch of a group at a time, or one message if it gets single
 * messages; later messages of the group wait. When a message is returned to its queue, the later ones are returned too, and
 * the broker redelivers them after it.
 */
import { isUnbegun } from "../Lifecycle.ts"
import type { Item } from "./item.ts"

/** The messages of one group that are in flight. */
export interface Group {
  readonly name: string
  /** The messages that are being decoded, wait for their batch, run or are being settled, in order. */
  readonly out: Set<Item>
  /** Later messages, each with the function that lets it proceed. */
  readonly behind: Array<{ readonly item: Item; readonly isAlone: boolean; readonly go: () => void }>
  /** Those of `out` that are returned because an earlier one is. */
  readonly following: Set<Item>
  /** Whether no message may join `out`: a handler has begun one of them, or one must run alone. */
  isClosed: boolean
}

export interface Groups {
  /** Number of messages that wait for earlier ones of their group. */
  readonly behind: () => number
  /**
   * Adds a message of a group, and calls `go` when it is next: at once, or when the earlier messages have left the queue. If
   * `isAlone`, it shares no batch with others of its group.
   */
  readonly arrived: (item: Item, isAlone: boolean, go: () => void) => void
  /** Must be called when a message is decoded. It joins its batch as soon as it may. */
  readonly ready: (item: Item) => void
  /** Must be called when a batch begins. Other messages of its groups wait until it ends. */
  readonly begun: (items: ReadonlyArray<Item>) => void
  /** Must be called when a message is no longer in flight. `isBack`: it was returned to its queue. */
  readonly ended: (item: Item, isBack: boolean) => void
  /** Returns all messages that wait for others to their queue. */
  readonly clear: () => void
}

export interface Dependencies {
  /** Whether the handler gets one message at a time. */
  readonly single: boolean
  /** Adds a decoded message to the batcher. */
  readonly join: (item: Item) => void
  /** Removes a message from the batcher. */
  readonly unwait: (item: Item) => void
  /** Returns messages that no handler has seen to their queue. */
  readonly giveBack: (items: ReadonlyArray<Item>) => void
}

/** Marks a message that is returned because an earlier one of its group is. */
export const follow = (item: Item): void => void item.group?.following.add(item)

export const make = ({ giveBack, join, single, unwait }: Dependencies): Groups => {
  const groups = new Map<string, Group>()
  let behind = 0

  const groupOf = (name: string): Group => {
    const group = groups.get(name) ?? { name, out: new Set(), behind: [], following: new Set(), isClosed: false }
    groups.set(name, group)
    return group
  }

  const mayGo = ({ isClosed, out }: Group, isAlone: boolean): boolean =>
    out.size === 0 || (!single && !isAlone && !isClosed && [...out].every(({ state }) => state._tag !== "Decoding"))

  /** Calls `go` of the messages that are next. */
  const advance = (group: Group): void => {
    while (group.behind.length > 0 && mayGo(group, group.behind[0]!.isAlone)) {
      const { go, isAlone, item } = group.behind.shift()!
      behind--
      group.isClosed = isAlone
      group.out.add(item)
      go()
    }
    if (group.out.size === 0 && group.behind.length === 0) groups.delete(group.name)
  }

  /** Makes decoded messages wait, in order of arrival, for those that a handler has begun. */
  const postpone = (group: Group, items: ReadonlyArray<Item>): void => {
    for (const item of items) {
      group.out.delete(item)
      const place = group.behind.findIndex((each) => each.item.key > item.key)
      const waiting = { item, isAlone: false, go: () => join(item) }
      group.behind.splice(place < 0 ? group.behind.length : place, 0, waiting)
    }
    behind += items.length
  }

  /** Removes the waiting messages from an index on. They leave the group, because a new group of its name may exist when they end. */
  const takeBehind = (group: Group, from: number): ReadonlyArray<Item> => {
    const items = group.behind.splice(from).map(({ item }) => item)
    for (const item of items) item.group = undefined
    behind -= items.length
    return items
  }

  /** Removes a message, and returns the later ones that no handler has begun. */
  const cut = (group: Group, item: Item): ReadonlyArray<Item> => {
    const out = [...group.out]
    const place = out.indexOf(item)
    if (place < 0) {
      const from = group.behind.findIndex((each) => each.item === item)
      return from < 0 ? [] : takeBehind(group, from).slice(1)
    }
    group.out.delete(item)
    return [...out.slice(place + 1).filter(({ state }) => isUnbegun(state)), ...takeBehind(group, 0)]
  }

  const returnAfter = (items: ReadonlyArray<Item>): void => {
    for (const item of items) {
      follow(item)
      unwait(item)
    }
    // A message that is being decoded is returned afterwards.
    const decoded = items.filter(({ state }) => state._tag !== "Decoding")
    if (decoded.length > 0) giveBack(decoded)
  }

  return {
    behind: () => behind,
    arrived: (item, isAlone, go) => {
      const group = groupOf(item.delivery.group!)
      item.group = group
      behind++
      group.behind.push({ item, isAlone, go })
      advance(group)
    },
    ready: (item) => {
      const group = item.group!
      if (group.following.has(item)) return giveBack([item])
      const next = group.behind[0]
      // If a batch of its group began while it was decoded, it waits for that batch, after earlier waiting messages.
      if ((next !== undefined && next.item.key < item.key) || (group.isClosed && group.out.size > 1))
        postpone(group, [item])
      else join(item)
      advance(group)
    },
    begun: (items) => {
      for (const { group } of items) {
        if (group === undefined || group.isClosed) continue
        group.isClosed = true
        const waiting = [...group.out].filter(({ state }) => state._tag === "Waiting")
        for (const item of waiting) unwait(item)
        postpone(group, waiting)
      }
    },
    ended: (item, isBack) => {
      const group = item.group!
      item.group = undefined
      // An item that follows a returned one: the later messages were returned with it.
      if (isBack && !group.following.has(item)) returnAfter(cut(group, item))
      else group.out.delete(item)
      group.following.delete(item)
      advance(group)
    },
    clear: () => {
      for (const group of groups.values()) returnAfter(takeBehind(group, 0))
    }
  }
}
