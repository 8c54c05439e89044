/**
 * Keeps the order within message groups. A handler has one batch of a group at a time, or one message if it gets single
 * messages; later messages of the group wait. When a message is returned to its queue, the later ones are returned too, and
 * the broker redelivers them after it.
 */
import { type Group, isUnbegun, type Item, type InFlightCounters } from "./item.ts"

export interface Groups {
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
  readonly load: InFlightCounters
  /** Adds a decoded message to the batcher. */
  readonly join: (item: Item) => void
  /** Removes a message from the batcher. */
  readonly unwait: (item: Item) => void
  /** Returns messages that no handler has seen to their queue. */
  readonly giveBack: (items: ReadonlyArray<Item>) => void
}

export const make = ({ giveBack, join, load, single, unwait }: Dependencies): Groups => {
  const groups = new Map<string, Group>()

  const groupOf = (name: string): Group => {
    const group = groups.get(name) ?? { name, out: new Set(), behind: [], isClosed: false }
    groups.set(name, group)
    return group
  }

  const mayGo = ({ isClosed, out }: Group, isAlone: boolean): boolean =>
    out.size === 0 || (!single && !isAlone && !isClosed && [...out].every(({ stage }) => stage !== "decoding"))

  /** Calls `go` of the messages that are next. */
  const advance = (group: Group): void => {
    while (group.behind.length > 0 && mayGo(group, group.behind[0]!.isAlone)) {
      const { go, isAlone, item } = group.behind.shift()!
      load.behind--
      group.isClosed = isAlone
      group.out.add(item)
      go()
    }
    if (group.out.size === 0 && group.behind.length === 0) groups.delete(group.name)
  }

  const follow = (items: ReadonlyArray<Item>): void => {
    for (const item of items) {
      item.isFollowing = true
      unwait(item)
    }
    // A message that is being decoded is returned afterwards.
    const decoded = items.filter(({ stage }) => stage !== "decoding")
    if (decoded.length > 0) giveBack(decoded)
  }

  return {
    arrived: (item, isAlone, go) => {
      const group = groupOf(item.delivery.group!)
      item.group = group
      load.behind++
      group.behind.push({ item, isAlone, go })
      advance(group)
    },
    ready: (item) => {
      const group = item.group!
      // If a batch of its group began while it was decoded, it waits for that batch, after earlier waiting messages.
      if (isBefore(group.behind[0], item) || (group.isClosed && group.out.size > 1)) postpone(group, [item], join, load)
      else join(item)
      advance(group)
    },
    begun: (items) => {
      for (const { group } of items) {
        if (group === undefined || group.isClosed) continue
        group.isClosed = true
        const waiting = [...group.out].filter(({ stage }) => stage === "waiting")
        for (const item of waiting) unwait(item)
        postpone(group, waiting, join, load)
      }
    },
    ended: (item, isBack) => {
      const group = item.group!
      item.group = undefined
      // An item that follows a returned one: the later messages were returned with it.
      if (!isBack || item.isFollowing) group.out.delete(item)
      else follow(cut(group, item, load))
      advance(group)
    },
    clear: () => {
      for (const group of groups.values()) follow(takeBehind(group, 0, load))
    }
  }
}

/** Removes the waiting messages from an index on. They leave the group, because a new group of its name may exist when they end. */
const takeBehind = ({ behind }: Group, from: number, load: InFlightCounters): ReadonlyArray<Item> => {
  const items = behind.splice(from).map(({ item }) => item)
  for (const item of items) item.group = undefined
  load.behind -= items.length
  return items
}

/** Whether the waiting message arrived before the item. */
const isBefore = (waiting: Group["behind"][number] | undefined, { key }: Item): boolean =>
  waiting !== undefined && waiting.item.key < key

/** Makes decoded messages wait, in order of arrival, for those that a handler has begun. */
const postpone = (
  { behind, out }: Group,
  items: ReadonlyArray<Item>,
  join: (item: Item) => void,
  load: InFlightCounters
): void => {
  for (const item of items) {
    out.delete(item)
    const place = behind.findIndex((each) => !isBefore(each, item))
    behind.splice(place < 0 ? behind.length : place, 0, { item, isAlone: false, go: () => join(item) })
  }
  load.behind += items.length
}

/** Removes a message, and returns the later ones that no handler has begun. */
const cut = (group: Group, item: Item, load: InFlightCounters): ReadonlyArray<Item> => {
  const out = [...group.out]
  const place = out.indexOf(item)
  if (place < 0) {
    const from = group.behind.findIndex((each) => each.item === item)
    return from < 0 ? [] : takeBehind(group, from, load).slice(1)
  }
  group.out.delete(item)
  return [...out.slice(place + 1).filter(isUnbegun), ...takeBehind(group, 0, load)]
}
