/** A broker with some operations changed. */
import type { Broker, Delivery } from "@requeue/core"
import * as Effect from "effect/Effect"

type Settle = (
  request: Broker.SettleRequest,
  subscription: Broker.Subscription
) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>

/** The operations to change. Default: each passes unchanged. */
export interface Changes {
  readonly publish?: (
    messages: Parameters<Broker.Service["publish"]>[0],
    publish: Broker.Service["publish"]
  ) => ReturnType<Broker.Service["publish"]>
  readonly onDelivery?: (delivery: Delivery.Delivery, options: Broker.SubscribeOptions) => void
  readonly onReconnect?: (options: Broker.SubscribeOptions) => void
  readonly credit?: (limit: number, subscription: Broker.Subscription) => void
  /** Returns another request, or what happens instead of it; `undefined` for a request that passes unchanged. */
  readonly settle?: (
    request: Broker.SettleRequest,
    options: Broker.SubscribeOptions
  ) => ReturnType<Settle> | Broker.SettleRequest | undefined
}

/** Makes a broker that forwards everything to another one, except for the changes. */
export const decorate = (
  broker: Broker.Service,
  { credit, onDelivery, onReconnect, publish, settle }: Changes
): Broker.Service => ({
  ...broker,
  publish: publish === undefined ? broker.publish : (messages) => publish(messages, broker.publish),
  subscribe: (options) =>
    Effect.map(
      broker.subscribe({
        ...options,
        onDelivery: (delivery) =>
          onDelivery === undefined ? options.onDelivery(delivery) : onDelivery(delivery, options),
        onReconnect: (isGone) => (onReconnect === undefined ? options.onReconnect(isGone) : onReconnect(options))
      }),
      (subscription) => ({
        ...subscription,
        credit: (limit) => (credit === undefined ? subscription.credit(limit) : credit(limit, subscription)),
        settle: (requests) =>
          Effect.map(
            Effect.forEach(requests, (request) => {
              const changed = settle?.(request, options) ?? request
              return "delivery" in changed ? subscription.settle([changed]) : changed
            }),
            (failures) => failures.flat()
          )
      })
    )
})
