/** Makes deliveries and items for tests. */
import type { Delivery } from "../src/message/Delivery.ts"
import { itemOf } from "../src/consume/internal/deliveries.ts"
import type { Item } from "../src/consume/internal/item.ts"
import * as Lifecycle from "../src/consume/Lifecycle.ts"
import * as Metadata from "../src/message/Metadata.ts"

export const delivery = (id: string, more: Partial<Delivery> = {}): Delivery => ({
  body: new TextEncoder().encode(JSON.stringify(id)),
  headers: {},
  attempts: 1,
  metadata: Metadata.make(id, 0),
  receipt: id,
  ...more
})

export const item = (id: string, arrived = 0, more: Partial<Delivery> = {}): Item => ({
  ...itemOf(delivery(id, more), Lifecycle.ordinary, id),
  body: id,
  arrived
})

const context = { now: 0, isStopping: false, isBound: true, countsReleases: false, copiesRetries: false }

/** Steps an item, as the engine does. */
export const step = (item: Item, event: Lifecycle.Event): Item =>
  Object.assign(item, Lifecycle.step(item, event, context).life)

export const ids = (items: ReadonlyArray<Item> | undefined) => items?.map(({ key }) => key).join("")
