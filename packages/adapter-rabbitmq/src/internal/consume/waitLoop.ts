/** The waiting queue of a `waitLoop`: what is due goes to work, the rest goes round again. */
import type { BrokerError, Delivery, Outgoing } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Plan } from "../../RabbitMqPlan.ts"
import { attend, type Environment } from "./sessions.ts"
import type { Properties } from "../client.ts"
import type { Receipt } from "./session.ts"

/** Messages that are moved on at a time. */
const width = 100

export const turn = (
  plan: Plan,
  waiting: string,
  env: Environment & {
    readonly publish: (
      plan: Plan,
      copy: Outgoing.Outgoing,
      original: Properties
    ) => Effect.Effect<void, BrokerError.BrokerError>
    readonly fork: (effect: Effect.Effect<unknown>) => void
  }
): Effect.Effect<void, BrokerError.BrokerError, Scope.Scope> => {
  const onDelivery = (delivery: Delivery.Delivery): void => {
    const receipt = delivery.receipt as Receipt
    const { body, headers, metadata } = delivery
    const rest = Math.max(0, metadata.notBefore - env.now())
    const due = rest === 0 ? { ...metadata, notBefore: 0 } : metadata
    const copy = { queue: plan.queue, body, headers, delay: Math.ceil(rest), metadata: due }
    env.fork(
      Effect.matchEffect(env.publish(plan, copy, receipt.properties), {
        onSuccess: () => Effect.sync(() => receipt.session.take(receipt) && receipt.session.ack([receipt])),
        onFailure: () => Effect.sync(() => receipt.session.take(receipt) && receipt.session.giveBack(receipt, "Nack"))
      })
    )
  }
  return Effect.map(
    attend({ queue: waiting, objects: plan.objects, keepsNotBefore: true, onDelivery, onReconnect: () => {} }, env),
    ({ credit }) => credit(width)
  )
}
