/**
 * Copies of messages by the adapter's names: those in flight that the broker may redeliver, and what is remembered of lost ones
 * until their redelivery.
 */
import type { Delivery } from "../../message/Delivery.ts"
import * as BoundedMap from "../../runtime/BoundedMap.ts"
import * as ShortList from "../../runtime/ShortList.ts"
import * as TransientMap from "../../runtime/TransientMap.ts"
import * as Lifecycle from "../Lifecycle.ts"
import type { Item, SubscriptionRef } from "./item.ts"
import type { Reporter } from "../../observe/Reporter.ts"

export interface Copies {
  readonly add: (item: Item) => void
  /** Does nothing for an item that was not added. */
  readonly delete: (item: Item) => void
  /** Returns the item of the same copy; `undefined` if there is none. */
  readonly find: (delivery: Delivery) => Item | undefined
  /** Remembers a copy for its redelivery. */
  readonly remember: (delivery: Delivery, memory: Lifecycle.Memory) => void
  /**
   * Removes and returns what is remembered about a redelivery; `undefined` if nothing is. `"older"`: it was sent before the
   * remembered delivery but arrived after it, and nothing is removed.
   */
  readonly recall: (delivery: Delivery) => ReturnType<typeof Lifecycle.recall> | "older" | undefined
}

/** Returns the adapter's name of a copy; `undefined` if it has none. */
export type Identify = (delivery: Delivery) => string | undefined

/** The least number of copies to remember; the oldest are forgotten first. */
const limit = 10_000

/** `isBound`: deliveries end with their connection, so the broker's count of attempts may restart. */
export const make = (identify: Identify, isBound: boolean): Copies => {
  /** Foreign messages without ids may share a name. */
  const byName = TransientMap.make<Array<Item>>()
  const memories = BoundedMap.make<Lifecycle.Memory>(limit)
  return {
    add: (item) => {
      const name = identify(item.delivery)
      item.name = name
      if (name === undefined) return
      const same = byName.get(name)
      if (same === undefined) byName.set(name, ShortList.of(item))
      else same.push(item)
    },
    delete: (item) => {
      const { name } = item
      const same = name === undefined ? undefined : byName.get(name)
      if (name === undefined || same === undefined) return
      same.splice(same.indexOf(item), 1)
      if (same.length === 0) byName.delete(name)
      item.name = undefined
    },
    find: (delivery) => {
      const name = byName.size() === 0 ? undefined : identify(delivery)
      if (name === undefined) return undefined
      const { id } = delivery.metadata
      return byName
        .get(name)
        ?.find((item) => item.history.redelivery !== "separate" && item.delivery.metadata.id === id)
    },
    remember: (delivery, memory) => {
      const name = identify(delivery)
      if (name === undefined) return
      // Two copies with one name cannot be distinguished, so neither is settled without a run.
      const isUnsure = memory.isLost && memories.get(name)?.isLost === true
      memories.set(name, isUnsure ? { ...memory, decision: undefined } : memory)
    },
    recall: (delivery) => {
      const name = memories.isEmpty() ? undefined : identify(delivery)
      const found = name === undefined ? undefined : memories.get(name)
      if (name === undefined || found?.id !== delivery.metadata.id) return undefined
      if (!isBound && delivery.attempts < found.brokerAttempts) return "older"
      memories.delete(name)
      return Lifecycle.recall(found, delivery)
    }
  }
}

/** Returns the names that the adapter gives; `undefined` when it throws or returns anything but a string. */
export const naming =
  (outlet: SubscriptionRef, reporter: Pick<Reporter, "threw">): Identify =>
  (delivery) => {
    try {
      const name: unknown = outlet.subscription?.identify(delivery)
      return typeof name === "string" ? name : undefined
    } catch (error) {
      reporter.threw("the adapter's identify", error)
      return undefined
    }
  }
