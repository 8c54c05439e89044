/**
 * The deliveries in flight of which the broker may deliver the same copy again, by the adapter's name of that copy: with
 * leases all of them, and else those that are lost with their connection.
 */
import type { Delivery } from "../../message/Delivery.ts"
import type { Item, SubscriptionRef } from "./item.ts"
import type { Reporter } from "./reporter.ts"

export interface Copies {
  readonly add: (item: Item) => void
  /** Does nothing for one that was not added. */
  readonly delete: (item: Item) => void
  /** The delivery of the same copy; `undefined` where there is none. */
  readonly find: (delivery: Delivery) => Item | undefined
}

/** The name that the adapter gives to a copy; `undefined` where it gives none. */
export type Identify = (delivery: Delivery) => string | undefined

export const make = (identify: Identify): Copies => {
  /** Foreign messages without ids may have one name, where the broker gives none. */
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
      // Former tables of the map keep its arrays until the next full garbage collection, and so no messages.
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

/** The names that the adapter gives. One that throws, or answers no name, names nothing. */
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
