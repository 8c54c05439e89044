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

const isAtHome = ({ at, home }: Known): boolean => at === home

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
  /** By delivery: entries on their way that a consumer moves on. */
  const moving = new Map<Delivery, Entry>()
  const moved = new WeakSet<Entry>()

  /** The entry on its way that the next one continues. A second continuation is another copy. */
  const continued = (entry: Entry | undefined): Known | undefined => {
    const former = entry && known.get(entry)
    if (entry === undefined || former === undefined || isAtHome(former) || moved.has(entry)) return undefined
    moved.add(entry)
    return former
  }

  const stored = ({ entry, origin, queue }: Of<"Stored">): void => {
    const purpose = origin._tag === "Published" ? purposeOf(origin.publication) : undefined
    const mover = purpose?.of === undefined ? undefined : moving.get(purpose.of)
    const former = continued(origin._tag === "GivenUp" ? origin.entry : mover)
    if (former !== undefined) return void known.set(entry, { ...former, at: queue })
    const parcel = Parcels.from(entry.message)
    const { delay, home } = Homes.wayFrom(vhost(), queue, entry.message)
    const one = { copy: number(), key: keyOf(parcel), at: queue, home }
    known.set(entry, one)
    record({
      _tag: "Stored",
      copy: one.copy,
      key: one.key,
      queue: home,
      due: worldNow() + delay,
      process: purpose?.process,
      of: mover === undefined ? purpose?.of : undefined,
      native: origin._tag === "GivenUp",
      ...taleOf(parcel.metadata)
    })
  }

  return (fact: Fact): void => {
    if (fact._tag === "Stored") return stored(fact)
    const { entry } = fact
    const one = known.get(entry)!
    const { copy, home: queue, key } = one
    const { delivery } = entry
    const about = { copy, key, delivery }
    switch (fact._tag) {
      case "HandedOut":
        if (!isAtHome(one)) return void moving.set(delivery, entry)
        return record({ _tag: "HandedOut", ...about, queue, process: fact.client, count: entry.failures + 1 })
      case "Back": {
        if (!isAtHome(one)) return
        const due = worldNow() + Math.max(0, fact.due - now())
        return record({ _tag: "Back", ...about, due, why: fact.how === "ended" ? "connection" : "asked" })
      }
      case "Gone": {
        if (!isAtHome(one) && (fact.why === "expired" || moved.has(entry))) return
        return record({ _tag: "Gone", ...about, queue, why: reasons[fact.why], ...(fact.why === "settled" ? {} : none) })
      }
    }
  }
}

const none = { delivery: undefined }

type Of<Tag extends Fact["_tag"]> = Extract<Fact, { readonly _tag: Tag }>
