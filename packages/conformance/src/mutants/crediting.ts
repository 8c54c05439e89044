/** Brokers that handle credit wrongly. */
import * as Effect from "effect/Effect"
import { decorate } from "../internal/decorate.ts"
import type { Mutant } from "../Mutant.ts"

export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "takes credit 0 for a suggestion",
    kills: "no more deliveries are unsettled than the credit allows, and credit 0 stops them",
    broker: (broker) => decorate(broker, { credit: (limit, subscription) => limit > 0 && subscription.credit(limit) })
  },
  {
    name: "always delivers one more",
    kills: "no more deliveries are unsettled than the credit allows, and credit 0 stops them",
    broker: (broker) => decorate(broker, { credit: (limit, subscription) => subscription.credit(Math.max(1, limit)) })
  },
  {
    name: "gives all the credit again after a reconnect",
    kills: "what handlers still have of a lost connection takes room: no more is held than before",
    broker: (broker) => {
      let most = 0
      const raise = (limit: number) => (most = Math.max(most, limit))
      const greedy = decorate(broker, {
        credit: (limit, subscription) => subscription.credit(limit > 0 ? raise(limit) : 0)
      })
      return {
        ...greedy,
        subscribe: (options) =>
          Effect.map(greedy.subscribe(options), (subscription) => ({ ...subscription, identify: () => undefined }))
      }
    }
  },
  {
    name: "counts what comes after a pause as a second attempt",
    kills: "what comes because of a resume right before the end has used up no attempt",
    broker: (broker) => {
      let hasPaused = false
      return decorate(broker, {
        credit: (limit, subscription) => {
          hasPaused ||= limit === 0
          subscription.credit(limit)
        },
        onDelivery: (delivery, options) =>
          options.onDelivery(hasPaused ? { ...delivery, attempts: delivery.attempts + 1 } : delivery)
      })
    }
  },
  {
    name: "ignores the limit of the credit",
    kills: "what a consumer holds is bounded, and what it does not hold waits in the broker",
    broker: (broker) => decorate(broker, { credit: (limit, subscription) => subscription.credit(limit > 0 ? 1000 : 0) })
  }
]
