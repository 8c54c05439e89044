/**
 * The order within message groups. Of a group, the messages of one batch are with the handler at a time, or one message
 * where the handler takes single ones; the others wait behind them. When a message goes back to its queue, those behind it
 * do as well: the broker delivers them again after it.
 */
import { type Group, isUnbegun, type Item, type InFlightCounters } from "./item.ts"

export interface Groups {
  /**
   * Takes in a message of a group, and calls `go` when its turn has come: at once, or when those before it have left the
   * queue. One that is alone shares no batch with others of its group.
   */
  readonly arrived: (item: Item, isAlone: boolean, go: () => void) => void
  /** A message is decoded, and waits for its batch as soon as it may. */
  readonly ready: (item: Item) => void
  /** A batch of these has begun. What it has left of their groups waits for its end. */
  readonly begun: (items: ReadonlyArray<Item>) => void
  /** A message of a group is in flight no more: it has left its queue, or is in it again. */
  readonly ended: (item: Item, isBack: boolean) => void
  /** Gives back all that waits for others. */
  readonly clear: () => void
}

export interface Dependencies {
  /** Whether the handler takes one message at a time. */
  readonly single: boolean
  readonly load: InFlightCounters
  /** Lets a decoded message wait for its batch. */
  readonly join: (item: Item) => void
  /** Removes a message from those that wait for their batch. */
  readonly unwait: (item: Item) => void
  /** Gives messages back that no handler has seen. */
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

  /** Lets those go whose turn has come. */
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
    // Its codec is at work: it goes back when that has ended.
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
      // A batch has begun while its codec was at work: it waits for the end of that, and behind those that wait for it as well.
      if (isBefore(group.behind[0], item) || (group.isClosed && group.out.size > 1)) postpone(group, [item], join, load)
      else join(item)
      advance(group)
    },
    begun: (items) => {
      for (const { group } of items) {
        if (group === undefined || group.isClosed) continue
        group.isClosed = true
        const left = [...group.out].filter(({ stage }) => stage === "waiting")
        for (const item of left) unwait(item)
        postpone(group, left, join, load)
      }
    },
    ended: (item, isBack) => {
      const group = item.group!
      item.group = undefined
      // What follows another one goes back for its sake, and those behind it went with it.
      if (!isBack || item.isFollowing) group.out.delete(item)
      else follow(cut(group, item, load))
      advance(group)
    },
    clear: () => {
      for (const group of groups.values()) follow(takeBehind(group, 0, load))
    }
  }
}

/** Removes those behind from there on. By the time that they end, messages may have come that are a new group of that name. */
const takeBehind = ({ behind }: Group, from: number, load: InFlightCounters): ReadonlyArray<Item> => {
  const items = behind.splice(from).map(({ item }) => item)
  for (const item of items) item.group = undefined
  load.behind -= items.length
  return items
}

/** Whether what waits has come before this one. */
const isBefore = (waiting: Group["behind"][number] | undefined, { key }: Item): boolean =>
  waiting !== undefined && waiting.item.key < key

/** Makes decoded messages wait, in their places, for those that a handler has begun. */
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

/** Removes a message, and answers those after it that no handler has begun. */
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
