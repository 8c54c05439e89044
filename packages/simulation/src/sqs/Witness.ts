/**
 * Writes the history of a simulated SQS. Its facts have the clients and the entries of calls; the activity of processes shows
 * what an entry is for, at the moment when the process passes it to its driver.
 */
import type * as Api from "../servers/sqs/Api.ts"
import type { Fact, Listener } from "../servers/sqs/Facts.ts"
import type { Message } from "../servers/sqs/Message.ts"
import * as Receipts from "../servers/sqs/Receipts.ts"
import type { Asked, Delivery } from "../History.ts"
import { queue as work } from "../Scenario.ts"
import { keyOf, taleOf } from "../world/Store.ts"
import type { World } from "../world/World.ts"
import * as Names from "./Names.ts"
import * as Parcels from "./Parcels.ts"

/** Makes the history of a server. */
export interface Witness {
  readonly listen: Listener
  /** A process passes a call to its driver. */
  readonly note: (call: Api.Call) => void
}

/** Why a message has left its queue, in the terms of histories. */
const reasons = {
  settled: "settled",
  purged: "purged",
  backstop: "backstop",
  expired: "forgotten",
  deleted: "deleted",
  moved: "deleted"
} as const

/** The weight of a stored copy, above any number of sent ones. */
const stored = 1000

const parcelOf = ({ content: { attributes, body } }: Message) =>
  Parcels.fromEntry({ MessageAttributes: attributes, MessageBody: body })

/** Nothing has happened. `now` is the server's clock. */
export const make = (world: World, now: () => number): Witness => {
  const { activity, record } = world
  /** What entries are for: the settlement that a copy serves, an extension of a lease, a purge. */
  const served = new WeakMap<Api.Entry, Delivery>()
  const extending = new WeakSet<Api.Entry>()
  const purging = new WeakSet<Api.Entry>()
  /** The deliveries of each message to each process. */
  const given = new Map<string, Array<Delivery>>()
  /** For each delivery that has copies: how many are sent, and many more once one is stored. */
  const copies = new Map<Delivery, number>()
  /** Deliveries whose client has returned them. */
  const returned = new Set<Delivery>()

  /** The settlement that was requested last for a delivery. */
  const askedOf = (delivery: Delivery): Asked | undefined => {
    const asked = world.history.findLast((entry) => entry._tag === "Asked" && entry.delivery === delivery)
    return asked?._tag === "Asked" ? asked.settlement : undefined
  }

  /** Whether the settlement of a delivery may be a copy in a queue. */
  const maySend = (delivery: Delivery, to: string): boolean => {
    const { queue = work, tag } = askedOf(delivery) ?? {}
    return tag !== "Ack" && tag !== "Drop" && queue === to
  }

  const countOf = (delivery: Delivery): number => copies.get(delivery) ?? 0
  const count = (delivery: Delivery, by: number): void => void copies.set(delivery, countOf(delivery) + by)

  /** The delivery that a copy is made for: of those that the process settles so, the one with the fewest copies. */
  const source = (process: string, entry: Api.Entry, queue: string): Delivery | undefined => {
    const key = keyOf(Parcels.fromEntry(entry))
    if (activity.has("publish", process, key)) return undefined
    const all = given.get(`${process} ${key}`) ?? []
    const settled = all.filter((each) => activity.has("settle", process, each) && maySend(each, queue))
    // A client that ends returns what it holds, perhaps as a copy, without a request.
    const found = settled.toSorted((one, other) => countOf(one) - countOf(other))[0] ?? all.at(-1)
    if (found !== undefined) count(found, 1)
    return found
  }

  const isExtension = (process: string, { ReceiptHandle = "", VisibilityTimeout = 0 }: Api.Entry): boolean =>
    VisibilityTimeout > 0 &&
    (activity.has("extend", process, Receipts.deliveryOf(ReceiptHandle)) || activity.has("browse", process))

  const about = ({ message, queue }: Pick<Fact, "message" | "queue">) => {
    const parcel = parcelOf(message)
    return { parcel, copy: message.copy, key: keyOf(parcel), queue: Names.inWorld(queue) }
  }

  const dueIn = (due: number): number => world.now() + Math.max(0, due - now())

  const changed = (fact: Extract<Fact, { _tag: "Changed" }>): void => {
    const { copy, key } = about(fact)
    const { delivery, due, entry } = fact
    if (entry !== undefined && extending.has(entry)) return void returned.delete(delivery)
    returned.add(delivery)
    record({ _tag: "Back", copy, key, delivery, due: dueIn(due), why: "asked" })
  }

  const listen = (fact: Fact): void => {
    const { copy, key, parcel, queue } = about(fact)
    switch (fact._tag) {
      case "Stored": {
        const { client: process, due, entry, isNative: native } = fact
        const of = entry && served.get(entry)
        if (of !== undefined) count(of, stored)
        record({
          _tag: "Stored",
          copy,
          key,
          queue,
          due: dueIn(due),
          process,
          of,
          native,
          ...taleOf(parcel.metadata)
        })
        return
      }
      case "HandedOut": {
        const { client: process = "foreign", delivery, message } = fact
        const name = `${process} ${key}`
        given.set(name, [...(given.get(name) ?? []), delivery])
        return record({ _tag: "HandedOut", copy, key, queue, delivery, process, count: message.receives })
      }
      case "Changed":
        return changed(fact)
      case "Back": {
        const { delivery } = fact
        if (returned.has(delivery)) return
        return record({ _tag: "Back", copy, key, delivery, due: world.now(), why: "lease" })
      }
      case "Gone": {
        const { delivery, entry, why } = fact
        const isPurge = entry !== undefined && purging.has(entry)
        return record({ _tag: "Gone", copy, key, queue, why: isPurge ? "purged" : reasons[why], delivery })
      }
    }
  }

  return {
    listen,
    note: ({ action, body: { Entries = [] }, client = "", queue }) => {
      for (const entry of Entries) {
        if (action === "SendMessageBatch") {
          const of = served.get(entry) ?? source(client, entry, Names.inWorld(queue))
          if (of !== undefined) served.set(entry, of)
        } else if (action === "ChangeMessageVisibilityBatch") {
          if (isExtension(client, entry)) extending.add(entry)
        } else if (activity.has("purge", client) && !activity.has("remove", client)) purging.add(entry)
      }
    }
  }
}
