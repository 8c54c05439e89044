/**
 * The deliveries in flight whose copy the broker may redeliver, by the adapter's name of the copy: all deliveries if the
 * broker has leases, otherwise those that were lost with their connection.
 */
import type { Delivery } from "../../message/Delivery.ts"
import type { Item, SubscriptionRef } from "./item.ts"
import type { Reporter } from "./reporter.ts"

export interface Copies {
  readonly add: (item: Item) => void
  /** Does nothing for an item that was not added. */
  readonly delete: (item: Item) => void
  /** Returns the item of the same copy; `undefined` if there is none. */
  readonly find: (delivery: Delivery) => Item | undefined
}

/** Returns the adapter's name of a copy; `undefined` if it has none. */
export type Identify = (delivery: Delivery) => string | undefined

export const make = (identify: Identify): Copies => {
  /** Foreign messages without ids may share a name. */
  const byName = new Map<string, Array<Item>>()
  return {
    add: (item) => {
      const name = identify(item.delivery)
      item.name = name
      if (name === undefined) return
      const same = byName.get(name)
      if (same === undefined) byName.set(name, [item])
      else same.push(item)
    },
    delete: (item) => {
      const { name } = item
      const same = name === undefined ? undefined : byName.get(name)
      if (name === undefined || same === undefined) return
      // Old tables of the map keep this array until the next full garbage collection, so it must not keep the message.
      same.splice(same.indexOf(item), 1)
      if (same.length === 0) byName.delete(name)
      item.name = undefined
    },
    find: (delivery) => {
      const name = byName.size === 0 ? undefined : identify(delivery)
      if (name === undefined) return undefined
      const { id } = delivery.metadata
      return byName.get(name)?.find((item) => !item.isSuperseded && item.delivery.metadata.id === id)
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
