/** Changes single operations of a broker and passes the others on. */
import type { Service, SettleFailure, SettleRequest, SubscribeOptions, Subscription } from "@requeue/core/Broker"
import type { Delivery } from "@requeue/core/Delivery"
import * as Effect from "effect/Effect"

type Settle = (request: SettleRequest, subscription: Subscription) => Effect.Effect<ReadonlyArray<SettleFailure>>

export interface Changes {
  readonly publish?: (
    messages: Parameters<Service["publish"]>[0],
    publish: Service["publish"]
  ) => ReturnType<Service["publish"]>
  readonly onDelivery?: (delivery: Delivery, options: SubscribeOptions) => void
  readonly onReconnect?: (options: SubscribeOptions) => void
  readonly credit?: (limit: number, subscription: Subscription) => void
  /** Answers `undefined` for settlements that pass unchanged. */
  readonly settle?: (
    request: SettleRequest,
    options: SubscribeOptions
  ) => ReturnType<Settle> | SettleRequest | undefined
}

export const decorate = (broker: Service, { credit, onDelivery, onReconnect, publish, settle }: Changes): Service => ({
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
