/**
 * Purposes: the reasons for the entries of calls, which SQS does not know. The open calls of a process at its port show them when
 * it passes the entries to its driver, however late these arrive.
 */
import type { Asked, Delivery } from "../History.ts"
import { queue as work } from "../Scenario.ts"
import type * as Api from "../servers/sqs/Api.ts"
import * as Receipts from "../servers/sqs/Receipts.ts"
import { keyOf, taleOf } from "../world/Store.ts"
import type { World } from "../world/World.ts"
import * as Names from "./Names.ts"
import * as Parcels from "./Parcels.ts"

/** The purposes of all entries. */
export interface Purposes {
  /** A process passes a call to its driver. */
  readonly note: (call: Api.Call) => void
  /** A message is delivered to a process. */
  readonly given: (process: string, key: number, delivery: Delivery) => void
  /** An entry is stored. Returns the delivery whose settlement it serves; `undefined` for a send. */
  readonly stored: (entry: Api.Entry) => Delivery | undefined
  /** Whether an entry extends a lease. Otherwise it returns a message. */
  readonly extends: (entry: Api.Entry) => boolean
  readonly purges: (entry: Api.Entry) => boolean
}

/** The weight of a stored copy, above any number of sent ones. */
const weight = 1000

/** Finds the delivery that a copy is made for. */
const sources = ({ activity, history }: World) => {
  /** The deliveries of each message to each process. */
  const all = new Map<string, Array<Delivery>>()
  /** For each delivery that has copies: how many are sent, and much more once one is stored. */
  const copies = new Map<Delivery, number>()

  const countOf = (delivery: Delivery): number => copies.get(delivery) ?? 0
  const count = (delivery: Delivery, by: number): void => void copies.set(delivery, countOf(delivery) + by)

  const askedOf = (delivery: Delivery): Asked | undefined => {
    const asked = history.findLast((entry) => entry._tag === "Asked" && entry.delivery === delivery)
    return asked?._tag === "Asked" ? asked.settlement : undefined
  }

  /** Whether the settlement of a delivery may be a copy in a queue. */
  const maySend = (delivery: Delivery, to: string): boolean => {
    const { queue = work, tag } = askedOf(delivery) ?? {}
    return tag !== "Ack" && tag !== "Drop" && queue === to
  }

  return {
    count,
    given: (process: string, key: number, delivery: Delivery): void => {
      const name = `${process} ${key}`
      all.set(name, [...(all.get(name) ?? []), delivery])
    },
    /** Of the deliveries that the process settles so, the one with the fewest copies. */
    find: (process: string, entry: Api.Entry, queue: string): Delivery | undefined => {
      const parcel = Parcels.fromEntry(entry)
      const key = keyOf(parcel)
      if (activity.has("publish", process, key)) return undefined
      const given = all.get(`${process} ${key}`) ?? []
      const settled = given.filter((each) => activity.has("settle", process, each) && maySend(each, queue))
      // Messages that were sent twice may be settled together, for different reasons.
      const { reason } = taleOf(parcel.metadata)
      const alike = settled.filter((each) => askedOf(each)?.reason === reason)
      // A client that ends returns what it holds, perhaps as a copy, without a request.
      const found = alike.length > 0 ? alike : settled
      return found.toSorted((one, other) => countOf(one) - countOf(other))[0] ?? given.at(-1)
    }
  }
}

/** No entry is known. */
export const make = (world: World): Purposes => {
  const { activity } = world
  const { count, find, given } = sources(world)
  const served = new WeakMap<Api.Entry, Delivery>()
  const extending = new WeakSet<Api.Entry>()
  const purging = new WeakSet<Api.Entry>()

  const isExtension = (process: string, { ReceiptHandle = "", VisibilityTimeout = 0 }: Api.Entry): boolean =>
    VisibilityTimeout > 0 &&
    (activity.has("extend", process, Receipts.deliveryOf(ReceiptHandle)) || activity.has("browse", process))

  const send = (process: string, entry: Api.Entry, queue: string): void => {
    // The driver's next attempt has the same entries.
    if (served.has(entry)) return
    const source = find(process, entry, queue)
    if (source === undefined) return
    served.set(entry, source)
    count(source, 1)
  }

  return {
    note: ({ action, body: { Entries = [] }, client = "", queue }) => {
      for (const entry of Entries) {
        if (action === "SendMessageBatch") send(client, entry, Names.inWorld(queue))
        else if (action === "ChangeMessageVisibilityBatch" && isExtension(client, entry)) extending.add(entry)
        else if (action === "DeleteMessageBatch" && activity.has("purge", client)) purging.add(entry)
      }
    },
    given,
    stored: (entry) => {
      const source = served.get(entry)
      if (source !== undefined) count(source, weight)
      return source
    },
    extends: (entry) => extending.has(entry),
    purges: (entry) => purging.has(entry)
  }
}
