/** Brokers that settle wrongly: too often, not at all, or silently. */
import { type Broker } from "@requeue/core"
import { Outgoing, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { decorate } from "../internal/decorate.ts"
import type { Mutant } from "../Mutant.ts"

const extendsNothing = (name: string, kills: string): Mutant => ({
  name,
  kills,
  broker: (broker) => ({
    ...broker,
    subscribe: (options) =>
      Effect.map(broker.subscribe(options), (subscription) => ({ ...subscription, extend: () => Effect.succeed([]) }))
  })
})

/** Every retry is stored, whatever becomes of its delivery. */
const retriesLost = (broker: Broker.Service): Broker.Service => ({
  ...broker,
  subscribe: (options) =>
    Effect.map(broker.subscribe(options), (subscription) => ({
      ...subscription,
      settle: (requests) =>
        Effect.flatMap(subscription.settle(requests), (failures) => {
          const lost = failures.flatMap(({ delivery, fate }) =>
            requests.flatMap(({ delivery: asked, settlement }) =>
              asked === delivery && fate === "lost" && settlement._tag === "Retry"
                ? [Outgoing.retry(delivery, settlement, options.queue, delivery.metadata.firstPublished)]
                : []
            )
          )
          return Effect.as(lost.length === 0 ? Effect.void : Effect.orDie(broker.publish(lost)), failures)
        })
    }))
})

export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "swallows failures of settlements",
    kills: "a settlement of a lost connection is refused, and the message is redelivered on the new one",
    broker: (broker) => ({
      ...broker,
      subscribe: (options) =>
        Effect.map(broker.subscribe(options), (subscription) => ({
          ...subscription,
          settle: (requests) => Effect.as(subscription.settle(requests), [])
        }))
    })
  },
  {
    name: "hands out again what is still ours",
    kills: "where deliveries outlive connections, one that breaks in the middle of a batch changes nothing",
    broker: (broker, fork) =>
      decorate(broker, {
        onDelivery: (delivery, { onDelivery }) => {
          onDelivery(delivery)
          const again = { ...delivery, attempts: delivery.attempts + 1 }
          if (delivery.attempts === 1)
            fork(
              Effect.delay(
                Effect.sync(() => onDelivery(again)),
                100
              )
            )
        }
      })
  },
  {
    name: "forgets what was not settled",
    kills:
      "where deliveries outlive connections, a message whose ack was lost is redelivered when its lease ends, and is not run",
    broker: (broker) =>
      decorate(broker, {
        onDelivery: (delivery, { onDelivery }) => {
          if (delivery.attempts === 1) onDelivery(delivery)
        }
      })
  },
  {
    name: "makes a copy for a retry whose delivery is gone",
    kills:
      "a message that was redelivered on a new connection is settled once: a retry of its first delivery makes no second one",
    broker: retriesLost
  },
  {
    name: "makes a copy for a retry whose lease is gone",
    kills:
      "a message that was redelivered with a new lease is settled once: a retry of its first delivery makes no second one",
    broker: retriesLost
  },
  {
    name: "lets a second settlement undo the first",
    kills: "a delivery is settled once: what comes after does not reach the broker",
    broker: (broker) => {
      const settled = new Set<unknown>()
      return decorate(broker, {
        settle: ({ delivery }) => {
          if (settled.has(delivery)) return Effect.succeed([])
          settled.add(delivery)
          return undefined
        }
      })
    }
  },
  extendsNothing(
    "extends no leases",
    "a handler may run longer than the lease: it is extended, and the message does not come twice"
  ),
  extendsNothing("extends no leases of what waits", "a paused consumer keeps the leases of waiting messages"),
  {
    name: "tells of the first settlement that fails",
    kills: "of settlements in one call, each that fails is reported, and the others are done",
    broker: (broker) => ({
      ...broker,
      subscribe: (options) =>
        Effect.map(broker.subscribe(options), (subscription) => ({
          ...subscription,
          settle: (requests) => Effect.map(subscription.settle(requests), (failures) => failures.slice(0, 1))
        }))
    })
  },
  {
    name: "gives back to the tail",
    kills: "where the broker keeps an order, what is given back comes before what was sent after it",
    broker: (broker) => ({
      ...broker,
      subscribe: (options) =>
        Effect.map(broker.subscribe(options), (subscription) => {
          const again = ({ delivery, settlement }: Broker.SettleRequest) =>
            settlement._tag === "Release"
              ? [Outgoing.hop(delivery, settlement, options.queue, delivery.metadata.firstPublished)]
              : []
          return {
            ...subscription,
            settle: (requests) =>
              Effect.andThen(
                Effect.orDie(broker.publish(requests.flatMap(again))),
                subscription.settle(
                  requests.map(({ delivery, settlement }) => ({
                    delivery,
                    settlement: settlement._tag === "Release" ? Settlement.Ack : settlement
                  }))
                )
              )
          }
        })
    })
  }
]
