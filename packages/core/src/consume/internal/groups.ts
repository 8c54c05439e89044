/**
 * Keeps the order within message groups. A handler has one batch of a group at a time, or one message if it gets single
 * messages; later messages of the group wait. When a message is returned to its queue, the later ones are returned too, and
 * the broker redelivers them after it.
 */
import { isUnbegun } from "../Lifecycle.ts"
import type { Settlement } from "../../message/Settlement.ts"
import type { Group, Item } from "./item.ts"

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
  /** Must be called when a redelivery that is settled as `item` takes its place. No other message may join it. */
  readonly replaced: (item: Item, by: Item) => void
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
  /** Whether a settlement returns its message to the same position in the queue. */
  readonly keepsPlace: (settlement: Settlement) => boolean
}

/** Marks a message that is returned because an earlier one of its group is. */
export const follow = (item: Item): void => void item.group?.following.add(item)

export const make = (dependencies: Dependencies): Groups => new InFlightGroups(dependencies)

class InFlightGroups implements Groups {
  readonly #dependencies: Dependencies
  readonly #groups = new Map<string, Group>()
  #behind = 0

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  behind = (): number => this.#behind

  arrived: Groups["arrived"] = (item, isAlone, go) => {
    const name = item.delivery.group!
    const group = this.#groups.get(name) ?? {
      name,
      out: new Set<Item>(),
      behind: [],
      following: new Set<Item>(),
      isClosed: false
    }
    this.#groups.set(name, group)
    item.group = group
    this.#behind++
    group.behind.push({ item, isAlone, go })
    this.#advance(group)
  }

  ready: Groups["ready"] = (item) => {
    const { giveBack, join } = this.#dependencies
    const group = item.group!
    if (group.following.has(item)) return giveBack([item])
    const next = group.behind[0]
    // If a batch of its group began while it was decoded, it waits for that batch, after earlier waiting messages.
    if ((next !== undefined && next.item.key < item.key) || (group.isClosed && group.out.size > 1)) {
      this.#postpone(group, [item])
    } else join(item)
    this.#advance(group)
  }

  begun: Groups["begun"] = (items) => {
    for (const { group } of items) {
      if (group === undefined || group.isClosed) continue
      group.isClosed = true
      const waiting = [...group.out].filter(({ state }) => state._tag === "Waiting")
      for (const item of waiting) this.#dependencies.unwait(item)
      this.#postpone(group, waiting)
    }
  }

  ended: Groups["ended"] = (item, isBack) => {
    const group = item.group!
    item.group = undefined
    // An item that follows a returned one: the later messages were returned with it.
    if (isBack && !group.following.has(item)) this.#giveBack(this.#cut(group, item))
    else group.out.delete(item)
    group.following.delete(item)
    this.#advance(group)
  }

  replaced: Groups["replaced"] = (item, by) => {
    const group = item.group!
    item.group = undefined
    by.group = group
    group.isClosed = true
    const out = [...group.out]
    group.out.clear()
    for (const each of out) group.out.add(each === item ? by : each)
    if (group.following.delete(item)) group.following.add(by)
  }

  clear = (): void => {
    for (const group of this.#groups.values()) this.#giveBack(this.#takeBehind(group, 0))
  }

  #mayGo({ isClosed, out }: Group, isAlone: boolean): boolean {
    if (out.size === 0) return true
    const { single } = this.#dependencies
    return !single && !isAlone && !isClosed && [...out].every((item) => this.#mayShare(item))
  }

  /** Whether a later message of the group may join its batch: not while it is decoded, nor if it is returned unseen. */
  #mayShare({ settlement, state }: Item): boolean {
    return isUnbegun(state) ? state._tag !== "Decoding" : !this.#dependencies.keepsPlace(settlement)
  }

  /** Calls `go` of the messages that are next. */
  #advance(group: Group): void {
    while (group.behind.length > 0 && this.#mayGo(group, group.behind[0]!.isAlone)) {
      const { go, isAlone, item } = group.behind.shift()!
      this.#behind--
      group.isClosed = isAlone
      group.out.add(item)
      go()
    }
    if (group.out.size === 0 && group.behind.length === 0) this.#groups.delete(group.name)
  }

  /** Makes decoded messages wait, in order of arrival, for those that a handler has begun. */
  #postpone(group: Group, items: ReadonlyArray<Item>): void {
    for (const item of items) {
      group.out.delete(item)
      const place = group.behind.findIndex((each) => each.item.key > item.key)
      const waiting = { item, isAlone: false, go: () => this.#dependencies.join(item) }
      group.behind.splice(place < 0 ? group.behind.length : place, 0, waiting)
    }
    this.#behind += items.length
  }

  /** Removes the waiting messages from an index on. They leave the group: a new group of its name may exist when they end. */
  #takeBehind(group: Group, from: number): ReadonlyArray<Item> {
    const items = group.behind.splice(from).map(({ item }) => item)
    for (const item of items) item.group = undefined
    this.#behind -= items.length
    return items
  }

  /** Removes a message, and returns the later ones that no handler has begun. */
  #cut(group: Group, item: Item): ReadonlyArray<Item> {
    const out = [...group.out]
    const place = out.indexOf(item)
    if (place < 0) {
      const from = group.behind.findIndex((each) => each.item === item)
      return from < 0 ? [] : this.#takeBehind(group, from).slice(1)
    }
    group.out.delete(item)
    return [...out.slice(place + 1).filter(({ state }) => isUnbegun(state)), ...this.#takeBehind(group, 0)]
  }

  /** Returns messages to their queue because an earlier one is. */
  #giveBack(items: ReadonlyArray<Item>): void {
    for (const item of items) {
      follow(item)
      this.#dependencies.unwait(item)
    }
    // A message that is being decoded is returned afterwards.
    const decoded = items.filter(({ state }) => state._tag !== "Decoding")
    if (decoded.length > 0) this.#dependencies.giveBack(decoded)
  }
}
