/** Writes the facts of simulated nsqd into the history. */
import type { Delivery, Fact } from "../History.ts"
import type { Command } from "../servers/nsq/Commands.ts"
import type * as Facts from "../servers/nsq/Facts.ts"
import { keyOf, taleOf } from "../world/Parcel.ts"
import type { World } from "../world/World.ts"
import * as Names from "./Names.ts"
import * as Parcels from "./Parcels.ts"
import type { Purposes } from "./Purposes.ts"

/** Why a message waits again, or has left its queue, in the terms of histories. */
const returns = { requeued: "asked", timeout: "lease", restart: "restart" } as const
const ends = { finished: "settled", emptied: "purged", deleted: "deleted", forgotten: "forgotten" } as const

/** The process of a connection: its driver numbers its connections. */
const processOf = (clientId: string): string => clientId.slice(0, clientId.lastIndexOf("-"))

/** A listener to nsqd. */
export interface Witness {
  readonly report: Facts.Report
  /** Runs a command that has arrived: what happens until it has run is its effect. */
  readonly during: (command: Command, run: () => void) => void
}

type Of<Tag extends Facts.Fact["_tag"]> = Extract<Facts.Fact, { readonly _tag: Tag }>

/** Listens. `now` is the clock of nsqd; `waits` is called when a message may wait for a client. */
export const make = (world: World, now: () => number, purposes: Purposes, waits: () => void): Witness => {
  const keys = new Map<number, number>()
  let current: Command | undefined

  const dueIn = (due: number): number => world.now() + Math.max(0, due - now())
  const settled = (delivery: Facts.Delivery | undefined): Delivery | undefined =>
    (current === undefined ? undefined : purposes.settles(current)) ?? delivery?.number

  const stored = ({ clientId, due, message: { body, copy } }: Of<"Stored">, queue: string): Fact => {
    const parcel = Parcels.read(body)
    const key = keyOf(parcel)
    keys.set(copy, key)
    const isPublished = clientId !== undefined && current !== undefined
    return {
      _tag: "Stored",
      copy,
      key,
      queue,
      due: dueIn(due),
      process: clientId === undefined ? undefined : processOf(clientId),
      of: isPublished ? purposes.stored(current!) : undefined,
      native: false,
      ...taleOf(parcel.metadata)
    }
  }

  const toFact = (fact: Exclude<Facts.Fact, { readonly _tag: "Due" }>): Fact => {
    const { message, place } = fact
    const { copy, id } = message
    const queue = Names.inWorld(place.topic)
    if (fact._tag === "Stored") return stored(fact, queue)
    const key = keys.get(copy)!
    switch (fact._tag) {
      case "HandedOut": {
        const { delivery } = fact
        const process = processOf(delivery.clientId)
        purposes.given(process, key, id, delivery)
        return { _tag: "HandedOut", copy, key, queue, delivery: delivery.number, process, count: delivery.attempts }
      }
      case "Back": {
        const delivery = fact.why === "requeued" ? settled(fact.delivery) : fact.delivery?.number
        return { _tag: "Back", copy, key, delivery, due: dueIn(fact.due), why: returns[fact.why] }
      }
      case "Gone": {
        const delivery = fact.why === "finished" ? settled(fact.delivery) : fact.delivery?.number
        return { _tag: "Gone", copy, key, queue, why: ends[fact.why], delivery }
      }
    }
  }

  return {
    report: (fact) => {
      if (fact._tag !== "Due") world.record(toFact(fact))
      if (fact._tag === "Due" || "due" in fact) waits()
    },
    during: (command, run) => {
      current = command
      run()
      current = undefined
    }
  }
}
