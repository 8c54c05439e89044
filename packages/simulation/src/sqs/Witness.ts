/** Writes the facts of a simulated SQS into the history. */
import type { Delivery } from "../History.ts"
import type { Fact, Listener } from "../servers/sqs/Facts.ts"
import type { Message } from "../servers/sqs/Message.ts"
import { keyOf, taleOf } from "../world/Parcel.ts"
import type { World } from "../world/World.ts"
import * as Names from "./Names.ts"
import * as Parcels from "./Parcels.ts"
import type { Purposes } from "./Purposes.ts"

/** Why a message has left its queue, in the terms of histories. */
const reasons = {
  settled: "settled",
  purged: "purged",
  backstop: "backstop",
  expired: "forgotten",
  deleted: "deleted",
  moved: "deleted"
} as const

const parcelOf = ({ content: { attributes, body } }: Message) =>
  Parcels.fromEntry({ MessageAttributes: attributes, MessageBody: body })

/** Listens to a server. `now` is its clock. */
export const make = (world: World, now: () => number, purposes: Purposes): Listener => {
  const { record } = world
  /** Deliveries whose client has returned them. */
  const returned = new Set<Delivery>()

  const dueIn = (due: number): number => world.now() + Math.max(0, due - now())

  const stored = ({ client: process, due, entry, isNative: native, message, queue }: Of<"Stored">): void => {
    const parcel = parcelOf(message)
    record({
      _tag: "Stored",
      copy: message.copy,
      key: keyOf(parcel),
      queue: Names.inWorld(queue),
      due: dueIn(due),
      process,
      of: entry && purposes.stored(entry),
      native,
      ...taleOf(parcel.metadata)
    })
  }

  const changed = (copy: number, key: number, { delivery, due, entry }: Of<"Changed">): void => {
    // A receive that is repeated begins the lease again.
    if (entry === undefined || purposes.extends(entry)) return void returned.delete(delivery)
    returned.add(delivery)
    record({ _tag: "Back", copy, key, delivery, due: dueIn(due), why: "asked" })
  }

  return (fact) => {
    const { copy } = fact.message
    const key = keyOf(parcelOf(fact.message))
    const queue = Names.inWorld(fact.queue)
    switch (fact._tag) {
      case "Stored":
        return stored(fact)
      case "HandedOut": {
        const { client: process = "foreign", delivery, message } = fact
        purposes.given(process, key, delivery)
        return record({ _tag: "HandedOut", copy, key, queue, delivery, process, count: message.receives })
      }
      case "Changed":
        return changed(copy, key, fact)
      case "Back": {
        const { delivery } = fact
        if (returned.has(delivery)) return
        return record({ _tag: "Back", copy, key, delivery, due: world.now(), why: "lease" })
      }
      case "Gone": {
        const { delivery, entry } = fact
        const why = entry !== undefined && purposes.purges(entry) ? "purged" : reasons[fact.why]
        return record({ _tag: "Gone", copy, key, queue, why, delivery })
      }
    }
  }
}

type Of<Tag extends Fact["_tag"]> = Extract<Fact, { readonly _tag: Tag }>
