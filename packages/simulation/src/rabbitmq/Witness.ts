/**
 * Writes the facts of a simulated RabbitMQ into the history. A delay moves a message through other queues: it stays the same copy
 * until it leaves its home.
 */
import type { Delivery } from "../History.ts"
import type { Entry } from "../servers/rabbitmq/Entry.ts"
import type { Fact } from "../servers/rabbitmq/Fact.ts"
import type { Publication } from "../servers/rabbitmq/Message.ts"
import type { Vhost } from "../servers/rabbitmq/Vhost.ts"
import { keyOf, taleOf } from "../world/Store.ts"
import type { World } from "../world/World.ts"
import * as Homes from "./Homes.ts"
import * as Parcels from "./Parcels.ts"

/** The process that has published a message, and the delivery whose settlement it serves; `undefined` for a send. */
export interface Purpose {
  readonly process: string
  readonly of: Delivery | undefined
}

/** An entry as the history has it. */
interface Known {
  readonly copy: number
  readonly key: number
  /** The queue that has the entry, and that which it is for. */
  readonly at: string
  readonly home: string
}

/** Why a message has left its home, in the terms of histories. */
const reasons = {
  settled: "settled",
  purged: "purged",
  deleted: "deleted",
  delivery_limit: "backstop",
  expired: "forgotten",
  rejected: "forgotten",
  maxlen: "forgotten"
} as const

/** Listens to a server. `now` is its clock. */
export const make = (
  { now: worldNow, number, record }: World,
  now: () => number,
  vhost: () => Vhost,
  purposeOf: (publication: Publication) => Purpose | undefined
) => {
  const known = new WeakMap<Entry, Known>()

  const stored = ({ entry, origin, queue }: Of<"Stored">): void => {
    const former = origin._tag === "GivenUp" ? known.get(origin.entry) : undefined
    if (former !== undefined && former.at !== former.home) return void known.set(entry, { ...former, at: queue })
    const parcel = Parcels.from(entry.message)
    const { delay, home } = Homes.wayFrom(vhost(), queue, entry.message)
    const purpose = origin._tag === "Published" ? purposeOf(origin.publication) : undefined
    const one = { copy: number(), key: keyOf(parcel), at: queue, home }
    known.set(entry, one)
    record({
      _tag: "Stored",
      copy: one.copy,
      key: one.key,
      queue: home,
      due: worldNow() + delay,
      process: purpose?.process,
      of: purpose?.of,
      native: origin._tag === "GivenUp",
      ...taleOf(parcel.metadata)
    })
  }

  const gone = ({ entry, why }: Of<"Gone">, { at, copy, home, key }: Known): void => {
    // It moves on.
    if (at !== home && why === "expired") return
    const delivery = why === "settled" ? entry.delivery : undefined
    record({ _tag: "Gone", copy, key, queue: home, why: reasons[why], delivery })
  }

  return (fact: Fact): void => {
    if (fact._tag === "Stored") return stored(fact)
    const { entry } = fact
    const one = known.get(entry)!
    const { copy, home: queue, key } = one
    const { delivery } = entry
    switch (fact._tag) {
      case "HandedOut": {
        const count = entry.failures + 1
        return record({ _tag: "HandedOut", copy, key, queue, delivery, process: fact.client, count })
      }
      case "Back": {
        const due = worldNow() + Math.max(0, fact.due - now())
        return record({ _tag: "Back", copy, key, delivery, due, why: fact.how === "ended" ? "connection" : "asked" })
      }
      case "Gone":
        return gone(fact, one)
    }
  }
}

type Of<Tag extends Fact["_tag"]> = Extract<Fact, { readonly _tag: Tag }>
