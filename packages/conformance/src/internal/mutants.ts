/** Makes mutants of the parts of a broker that work in transactions. */
import type { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import type { Mutant } from "../Mutant.ts"

type AckWithin = NonNullable<Broker.Subscription["ackWithin"]>
type PublishWithin = NonNullable<Broker.Service["publishWithin"]>

/** Changes the subscriptions of a broker. */
export const subscribed = (
  name: string,
  kills: string,
  change: (
    subscription: Broker.Subscription,
    broker: Broker.Service,
    options: Broker.SubscribeOptions
  ) => Partial<Broker.Subscription>
): Mutant => ({
  name,
  kills,
  broker: (broker) => ({
    ...broker,
    subscribe: (options) =>
      Effect.map(broker.subscribe(options), (subscription) => ({
        ...subscription,
        ...change(subscription, broker, options)
      }))
  })
})

/** Changes the acks in transactions. */
export const acks = (
  name: string,
  kills: string,
  change: (sound: AckWithin, subscription: Broker.Subscription) => AckWithin
): Mutant =>
  subscribed(name, kills, (subscription) => ({
    ackWithin: subscription.ackWithin && change(subscription.ackWithin, subscription)
  }))

/** Changes the publishes in transactions. */
export const publishes = (name: string, kills: string, change: (broker: Broker.Service) => PublishWithin): Mutant => ({
  name,
  kills,
  broker: (broker) => ({ ...broker, publishWithin: broker.publishWithin && change(broker) })
})
