/** Records what crosses the port between the core and a broker's client. */
import type { Broker, Delivery } from "@requeue/core/port"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { named, queue as work } from "../Scenario.ts"
import type * as Activity from "./Activity.ts"
import type { Machine } from "./Machine.ts"
import type { Client } from "./Model.ts"
import * as Parcels from "./Parcels.ts"
import { keyOf } from "./Parcel.ts"
import type { World } from "./World.ts"

/** The same broker, observed. Anything that a process does after it was killed, in the same turn, has no effect. */
export const observed = (world: World, machine: Machine, client: Client): Broker.Service => {
  const { numberOf, ...service } = client
  const observer = observing(world, machine, numberOf)
  const { admin } = service
  return {
    ...service,
    publish: (messages) => observer.during("publish", messages.map(keyOf), service.publish(messages)),
    subscribe: subscribing(observer, service),
    admin: {
      ...admin,
      purge: (queue) => observer.during("purge", [], admin.purge(queue)),
      browse: browsing(observer, admin.browse)
    }
  }
}

type Observer = ReturnType<typeof observing>

const observing = (world: World, machine: Machine, numberOf: (delivery: Delivery.Delivery) => number) => {
  const process = machine.name
  const { record } = world

  const during = <A, E>(
    what: Activity.What,
    on: ReadonlyArray<number>,
    call: Effect.Effect<A, E>
  ): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      if (!machine.isAlive()) return Effect.never
      return Effect.ensuring(call, Effect.sync(world.activity.begin(what, process, on)))
    })

  return {
    process,
    record,
    machine,
    numberOf,
    during,
    /** Lasts until the scope closes. */
    browsing: Effect.acquireRelease(
      Effect.sync(() => world.activity.begin("browse", process, [])),
      (end) => Effect.sync(end)
    ),
    /** Begins a call on some deliveries. The port promises that no lease is extended while its delivery is settled. */
    exclusively: <A, E>(what: "settle" | "extend", on: ReadonlyArray<number>, call: Effect.Effect<A, E>) =>
      Effect.suspend(() => {
        const other = what === "settle" ? "extend" : "settle"
        for (const number of on.filter((each) => world.activity.has(other, process, each))) {
          record({ _tag: "Defect", process, detail: `delivery ${number} is settled and extended at a time` })
        }
        return during(what, on, call)
      }),
    arrived: (delivery: Delivery.Delivery, queue: string): void => {
      const { attempts } = delivery
      const key = keyOf(delivery)
      record({ _tag: "Arrived", process, delivery: numberOf(delivery), key, queue: named(queue), attempts })
    },
    /** Records settlements and their answers. `ended`: the client no longer holds a delivery. */
    settled: <E>(
      requests: ReadonlyArray<Broker.SettleRequest>,
      call: Effect.Effect<ReadonlyArray<Broker.SettleFailure>, E>,
      ended: (delivery: number) => void
    ) => {
      const all = requests.map(({ delivery, settlement }) => ({
        of: delivery,
        about: { process, delivery: numberOf(delivery), settlement: Parcels.asked(settlement) }
      }))
      for (const { about } of all) record({ _tag: "Asked", ...about })
      return Effect.map(call, (failures) => {
        if (!machine.isAlive()) return failures
        for (const { about, of } of all) {
          const failure = failures.find((each) => each.delivery === of)
          // Cast, because no world has a store.
          const fate = failure?.fate as Exclude<Broker.Fate, "committed"> | undefined
          if (fate === undefined || fate === "lost") ended(about.delivery)
          record({ _tag: "Answered", ...about, fate })
        }
        return failures
      })
    }
  }
}

const subscribing =
  (observer: Observer, { subscribe }: Pick<Client, "subscribe">): Broker.Service["subscribe"] =>
  (options) => {
    const { exclusively, machine, numberOf, process, record } = observer
    const open = new Map<number, Delivery.Delivery>()
    const onDelivery = (delivery: Delivery.Delivery): void => {
      // A handler that ran at once, for an earlier message, may have killed the process.
      if (!machine.isAlive()) return
      const number = numberOf(delivery)
      const shown = Parcels.marked(delivery, number)
      open.set(number, shown)
      observer.arrived(shown, options.queue)
      options.onDelivery(shown)
    }
    const onReconnect = (isGone: (delivery: Delivery.Delivery) => boolean = () => true): void => {
      const gone = [...open].filter(([, delivery]) => isGone(delivery)).map(([number]) => number)
      for (const number of gone) open.delete(number)
      record({ _tag: "Reconnected", process, gone })
      options.onReconnect(isGone)
    }
    return Effect.map(subscribe({ ...options, onDelivery, onReconnect }), (subscription) => ({
      ...subscription,
      credit: (limit) => {
        if (!machine.isAlive()) return
        if (named(options.queue) === work) record({ _tag: "Credit", process, limit })
        subscription.credit(limit)
      },
      settle: (requests) => {
        if (!machine.isAlive()) return Effect.never
        const numbers = requests.map(({ delivery }) => numberOf(delivery))
        const call = exclusively("settle", numbers, subscription.settle(requests))
        return observer.settled(requests, call, (number) => void open.delete(number))
      },
      extend: (deliveries) =>
        Effect.map(exclusively("extend", deliveries.map(numberOf), subscription.extend(deliveries)), (failures) => {
          if (!machine.isAlive()) return failures
          for (const { delivery, fate } of failures) {
            if (fate === "lost") record({ _tag: "Lapsed", process, delivery: numberOf(delivery) })
          }
          return failures
        })
    }))
  }

const browsing =
  (observer: Observer, browse: Broker.Admin["browse"]): Broker.Admin["browse"] =>
  (options) => {
    const { during, numberOf, process, record } = observer
    const open = new Set<number>()
    const lost = Effect.sync(() => {
      record({ _tag: "Reconnected", process, gone: [...open] })
      open.clear()
    })
    return Effect.map(Effect.andThen(observer.browsing, browse(options)), (browser) => ({
      ...browser,
      next: (count) =>
        browser.next(count).pipe(
          Effect.tap((page) =>
            Effect.sync(() => {
              for (const { delivery } of page) {
                open.add(numberOf(delivery))
                observer.arrived(delivery, options.queue)
              }
            })
          ),
          Effect.tapError(() => lost)
        ),
      remove: (deliveries) => {
        const requests = deliveries.map((delivery) => ({ delivery, settlement: Settlement.Ack }))
        const call = during("remove", deliveries.map(numberOf), browser.remove(deliveries))
        return observer.settled(requests, call, (number) => void open.delete(number))
      }
    }))
  }
