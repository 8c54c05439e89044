/** The adapter for NSQ on one or two simulated nsqd, which it knows by their addresses or from a simulated nsqlookupd. */
import { NsqBroker, type NsqOptions } from "@requeue/adapter-nsq"
import { Driver } from "@requeue/adapter-nsq/driver"
import type { Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as NsqDriver from "../servers/nsq/Driver.ts"
import type * as Nsqd from "../servers/nsq/Nsqd.ts"
import type { Topic } from "../servers/nsq/Topic.ts"
import type { Model } from "../world/Model.ts"
import type { Parcel } from "../world/Parcel.ts"
import type { World } from "../world/World.ts"
import * as Names from "./Names.ts"
import * as Parcels from "./Parcels.ts"
import * as IdleChecks from "./IdleChecks.ts"
import * as Process from "./Process.ts"
import * as Purposes from "./Purposes.ts"
import * as Servers from "./Servers.ts"
import * as Settings from "./Settings.ts"

/** The probability of this setting. */
const chances = { kill: 0.5, all: 0.3 }

/** The part of a receipt that names its delivery. */
interface Receipt {
  readonly session: { readonly connection: { readonly clientId: string } }
  readonly id: string
  readonly deliveries: number
}

/** Foreign producers, and operators of nsqd. */
const operating = ({ after, draw }: World, all: ReadonlyArray<Nsqd.Nsqd>) => {
  /** Publishes of foreign producers that found no nsqd. */
  let waiting: Array<() => void> = []

  const any = <A>(place: string, of: ReadonlyArray<A>): A | undefined =>
    of[Math.floor(draw.between(place, 0, of.length))]

  const store = (queue: string, parcel: Parcel, stored: () => void): void => {
    const nsqd = any(
      "foreign",
      all.filter(({ isUp }) => isUp())
    )
    if (nsqd === undefined) return void waiting.push(() => store(queue, parcel, stored))
    nsqd.topic(Names.topicOf(queue)).put(Parcels.write(parcel), 0, undefined)
    stored()
  }

  const restartOne = (nsqd: Nsqd.Nsqd, away: number): void => {
    if (!nsqd.isUp()) return
    nsqd.restart(draw.chance(`${nsqd.name} restarts`, chances.kill) ? "kill" : "orderly", away)
    after(away, () => {
      const publishes = waiting
      waiting = []
      for (const publish of publishes) publish()
    })
  }

  const restart = (away: number): void => {
    const one = any("restarts", all)!
    for (const nsqd of draw.chance("all restart", chances.all) ? all : [one]) restartOne(nsqd, away)
  }
  return { restart, store }
}

/** Brokers without messages. */
export const make = (world: World): Model => {
  const { draw, scenario } = world
  const { hasAlias, hasTwoNsqd, isExact, publishesOverAll, usesLookupd } = Settings.of(scenario)
  const names = hasTwoNsqd ? ["nsqd1", "nsqd2"] : ["nsqd1"]
  const purposes = Purposes.make(world)
  const { changed, during, wakeAll } = IdleChecks.make(world)
  const { all, lookupd, network } = Servers.make(world, names, purposes, wakeAll)
  for (const { onChange } of all) onChange.add(changed)
  const addresses = [...names, ...(hasAlias ? [Servers.alias] : [])].map((name) => `${name}:4150`)
  const options: NsqOptions.Options = {
    messageTimeout: scenario.lease,
    retry: isExact ? "exact" : "native",
    publishOver: publishesOverAll ? "all" : "first",
    ...(usesLookupd ? { lookupd: [Servers.lookupUrl] } : { nsqd: addresses })
  }
  const numbers = new WeakMap<Receipt, number>()
  const numberOf = (delivery: Delivery.Delivery): number => {
    const receipt = delivery.receipt as Receipt // as the adapter makes them
    const { deliveries: attempts, id, session } = receipt
    const number = numbers.get(receipt) ?? purposes.arrivedAs({ clientId: session.connection.clientId, id, attempts })
    numbers.set(receipt, number)
    return number
  }

  const isEmpty = (topic: Topic): boolean => [topic, ...topic.channels()].every(({ waiting }) => waiting().length === 0)
  const isIdle = (queue: string) => (): boolean =>
    all.every(({ topics }) => topics().every((topic) => Names.inWorld(topic.name) !== queue || isEmpty(topic)))
  const { restart, store } = operating(world, all)

  return {
    client: (machine) =>
      during(machine, () => false, NsqBroker.make(options)).pipe(
        Effect.provideService(Driver, NsqDriver.make(Process.within(world, machine, network, purposes), machine.name)),
        Effect.map((service) => ({
          ...service,
          subscribe: (request) => during(machine, isIdle(request.queue), service.subscribe(request)),
          numberOf
        }))
      ),
    publish: (queue, parcel, stored) => {
      store(queue, parcel, stored)
      // A producer without an answer publishes again.
      if (world.fault("twice", "foreign")) store(queue, parcel, () => {})
    },
    restart: (away) => {
      changed()
      world.after(away, changed)
      restart(away)
      if (draw.chance("nsqlookupd restarts", chances.all)) lookupd.restart(away)
    },
    throttle: (millis) => {
      for (const { setTrouble } of all) setTrouble("the disk is full")
      world.after(millis, () => {
        for (const { setTrouble } of all) setTrouble(undefined)
      })
    }
  }
}
