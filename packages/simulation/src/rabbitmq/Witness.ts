/**
 * Writes the facts of a simulated RabbitMQ into the history. A message stays the same copy while a delay moves it through other
 * queues, and when its process replaces it without a settlement.
 */
import type { Delivery, Fact as Recorded } from "../History.ts"
import type { Entry } from "../servers/rabbitmq/Entry.ts"
import type { Fact } from "../servers/rabbitmq/Fact.ts"
import type { Publication } from "../servers/rabbitmq/Message.ts"
import type { Vhost } from "../servers/rabbitmq/Vhost.ts"
import { keyOf, taleOf } from "../world/Parcel.ts"
import type { World } from "../world/World.ts"
import * as Homes from "./Homes.ts"
import * as Parcels from "./Parcels.ts"

/** The process that has published a message, and the delivery that it was made of; `undefined` for a send. */
export interface Purpose {
  readonly process: string
  readonly of: Delivery | undefined
  /** Whether it only replaces the message of that delivery, and serves no settlement. */
  readonly replaces: boolean
}

/** The part of a purpose that histories have. */
type Source = Pick<Stored, "process" | "of" | "replaces">

const none: Source = { process: undefined, of: undefined }

/** An entry as the history has it. */
interface Known {
  readonly copy: number
  readonly key: number
  /** The queue that has the entry, and that which it is for. */
  readonly at: string
  readonly home: string
  /** The origin of its copy. */
  readonly source: Source
}

const isAtHome = ({ at, home }: Known): boolean => at === home

/** Whether a queue that gives a message up passes it on: the queues of delays do. */
const isPassedOn = (why: keyof typeof reasons): boolean => why === "expired" || why === "delivery_limit"

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

/** The copies of entries. */
const copiesOf = ({ now, number, record }: World, vhost: () => Vhost) => {
  const known = new WeakMap<Entry, Known>()
  /** Entries that another one continues, and its origin. */
  const continued = new Map<Entry, Source>()

  const keep = (entry: Entry, at: string, source: Source, isNative = false): void => {
    const parcel = Parcels.from(entry.message)
    const { delay, home: queue } = Homes.wayFrom(vhost(), at, entry.message)
    const [copy, key, due] = [number(), keyOf(parcel), now() + delay]
    known.set(entry, { copy, key, at, home: queue, source })
    const { of, process, replaces = false } = source
    const tale = taleOf(parcel.metadata)
    record({ _tag: "Stored", copy, key, queue, due, process, of, replaces, native: isNative, ...tale })
  }

  return {
    keep,
    of: (entry: Entry | undefined): Known | undefined => entry && known.get(entry),
    isContinued: (entry: Entry): boolean => continued.has(entry),
    /** Continues a copy in another entry; false if there is one already. */
    goesOn: (from: Entry | undefined, entry: Entry, at: string, source: Source = none): boolean => {
      const former = from && known.get(from)
      if (from === undefined || former === undefined || continued.has(from)) return false
      continued.set(from, source)
      known.set(entry, { ...former, at })
      return true
    },
    /** The process of an entry has lost it after it was replaced: now there are two. */
    split: (entry: Entry, one: Known): void => {
      // The history does not have its later deliveries.
      const source = continued.get(entry) ?? none
      continued.delete(entry)
      keep(entry, one.at, isAtHome(one) ? { ...source, replaces: true } : one.source)
    }
  }
}

/** Listens to a server. `now` is its clock. */
export const make = (
  world: World,
  now: () => number,
  vhost: () => Vhost,
  purposeOf: (publication: Publication) => Purpose | undefined
) => {
  const { record } = world
  const copies = copiesOf(world, vhost)
  const delivered = new Map<Delivery, Entry>()

  const published = (entry: Entry, queue: string, purpose: Purpose | undefined): void => {
    const from = purpose?.of === undefined || !purpose.replaces ? undefined : delivered.get(purpose.of)
    const former = copies.of(from)
    const wasAtHome = former === undefined || isAtHome(former)
    if (!copies.goesOn(from, entry, queue, purpose))
      return copies.keep(entry, queue, wasAtHome ? (purpose ?? none) : former.source)
    const { copy, key } = copies.of(entry)!
    if (!wasAtHome) return
    const about = { copy, key, delivery: purpose?.of, due: world.now() }
    record({ _tag: "Back", ...about, why: "asked", replaced: true })
  }

  const stored = ({ entry, origin, queue }: Of<"Stored">): void => {
    if (origin._tag === "Published") return published(entry, queue, purposeOf(origin.publication))
    const former = copies.of(origin.entry)
    if (former === undefined || isAtHome(former)) return copies.keep(entry, queue, none, true)
    // Its process has replaced it late, when the queue had it again: now there are two.
    if (!copies.goesOn(origin.entry, entry, queue)) return copies.keep(entry, queue, former.source)
    const { copy, home, key } = former
    if (queue === Homes.undelivered)
      record({ _tag: "Gone", copy, key, queue: home, why: "undelivered", ...withoutDelivery })
  }

  /** Records what happens to a copy at its home. */
  const changed = (fact: Exclude<Fact, { readonly _tag: "Stored" }>, { copy, home: queue, key }: Known): void => {
    const { delivery, failures } = fact.entry
    const about = { copy, key, delivery }
    // What replaces it from now on is another copy.
    if (fact._tag !== "HandedOut") delivered.delete(delivery)
    switch (fact._tag) {
      case "HandedOut":
        return record({ _tag: "HandedOut", ...about, queue, process: fact.client, count: failures + 1 })
      case "Back": {
        const due = world.now() + Math.max(0, fact.due - now())
        return record({ _tag: "Back", ...about, due, why: fact.how === "ended" ? "connection" : "asked" })
      }
      case "Gone": {
        const settled = fact.why === "settled" ? {} : withoutDelivery
        return record({ _tag: "Gone", ...about, queue, why: reasons[fact.why], ...settled })
      }
    }
  }

  return (fact: Fact): void => {
    if (fact._tag === "Stored") return stored(fact)
    const { entry } = fact
    const one = copies.of(entry)!
    if (fact._tag === "HandedOut") delivered.set(entry.delivery, entry)
    if (copies.isContinued(entry)) {
      if (fact._tag !== "Back") return
      // What replaces it from now on is another copy.
      delivered.delete(entry.delivery)
      return copies.split(entry, one)
    }
    if (isAtHome(one) || (fact._tag === "Gone" && !isPassedOn(fact.why))) changed(fact, one)
  }
}

const withoutDelivery = { delivery: undefined }

type Stored = Extract<Recorded, { readonly _tag: "Stored" }>

type Of<Tag extends Fact["_tag"]> = Extract<Fact, { readonly _tag: Tag }>
