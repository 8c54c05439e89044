/** Records what crosses the port between the core and a broker's client. */
import type { Broker, Delivery } from "@requeue/core/port"
import { Browser } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type { Machine } from "./Machine.ts"
import type { Client } from "./Model.ts"
import { asked, numberOf } from "./Parcels.ts"
import { keyOf } from "./Store.ts"
import type { World } from "./World.ts"

/** The same broker, observed. Anything that a process does after it was killed, in the same turn, has no effect. */
export const observed = (world: World, machine: Machine, service: Client): Broker.Service => {
  const subscribe = subscribing(world, machine, service)
  const { capabilities } = service
  return {
    ...service,
    publish: (messages) => (machine.isAlive() ? service.publish(messages) : Effect.never),
    subscribe,
    admin: { ...service.admin, browse: (options) => Browser.overSubscription({ capabilities, subscribe }, options) }
  }
}

const subscribing =
  (world: World, machine: Machine, service: Client): Broker.Service["subscribe"] =>
  (options) => {
    const process = machine.name
    const open = new Map<number, Delivery.Delivery>()
    const settling = new Set<number>()
    const extending = new Set<number>()
    /** Begins a call on some deliveries. The port promises that no lease is extended while its delivery is settled. */
    const begin = (numbers: ReadonlyArray<number>, calls: Set<number>, others: ReadonlySet<number>): void => {
      for (const number of numbers) {
        calls.add(number)
        if (others.has(number)) {
          world.record({ _tag: "Defect", process, detail: `delivery ${number} is settled and extended at a time` })
        }
      }
    }
    const onDelivery = (delivery: Delivery.Delivery): void => {
      const number = numberOf(delivery)
      const key = keyOf(delivery)
      open.set(number, delivery)
      world.record({
        _tag: "Arrived",
        process,
        delivery: number,
        key,
        queue: options.queue,
        attempts: delivery.attempts
      })
      options.onDelivery(delivery)
    }
    const onReconnect = (isGone: (delivery: Delivery.Delivery) => boolean = () => true): void => {
      const gone = [...open].filter(([, delivery]) => isGone(delivery)).map(([number]) => number)
      for (const number of gone) open.delete(number)
      world.record({ _tag: "Reconnected", process, gone })
      options.onReconnect(isGone)
    }
    return Effect.map(service.subscribe({ ...options, onDelivery, onReconnect }), (subscription) => ({
      ...subscription,
      credit: (limit) => {
        if (!machine.isAlive()) return
        if (options.queue === "work") world.record({ _tag: "Credit", process, limit })
        subscription.credit(limit)
      },
      settle: (requests) => {
        if (!machine.isAlive()) return Effect.never
        const numbers = requests.map(({ delivery }) => numberOf(delivery))
        begin(numbers, settling, extending)
        for (const { delivery, settlement } of requests) {
          world.record({ _tag: "Asked", process, delivery: numberOf(delivery), settlement: asked(settlement) })
        }
        return Effect.map(subscription.settle(requests), (failures) => {
          for (const number of numbers) settling.delete(number)
          for (const { delivery, settlement } of requests) {
            const number = numberOf(delivery)
            const fate = failures.find((failure) => failure.delivery === delivery)?.fate
            if (fate === undefined || fate === "lost") open.delete(number)
            world.record({ _tag: "Answered", process, delivery: number, settlement: asked(settlement), fate })
          }
          return failures
        })
      },
      extend: (deliveries) => {
        if (!machine.isAlive()) return Effect.never
        const numbers = deliveries.map(numberOf)
        begin(numbers, extending, settling)
        return Effect.map(subscription.extend(deliveries), (failures) => {
          for (const number of numbers) extending.delete(number)
          for (const { delivery, fate } of failures) {
            if (fate === "lost") world.record({ _tag: "Lapsed", process, delivery: numberOf(delivery) })
          }
          return failures
        })
      }
    }))
  }
