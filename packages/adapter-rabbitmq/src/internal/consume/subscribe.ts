/** Opens a subscription: the sessions of its queue, and the settling of their deliveries. */
import { BoundedMap, type Broker, type BrokerError, Outgoing } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Plan } from "../../RabbitMqPlan.ts"
import * as Settle from "../settle/settle.ts"
import { toCommand } from "../settle/toCommand.ts"
import { type Received, receiptOf } from "./receipt.ts"
import * as Sessions from "./sessions.ts"
import * as WaitLoop from "./waitLoop.ts"

/** Settled copies that are remembered: the server delivers them again if it lost their acks in a crash. */
const settledLimit = 20_000

/** Consumes a planned queue for as long as the scope lives. */
export const subscribe = (
  options: Broker.SubscribeOptions,
  plan: Plan,
  env: WaitLoop.Dependencies
): Effect.Effect<Broker.Subscription, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { fork, now, sender } = env
    const { deliveryLimit, queueType } = env.settings
    const { queue } = options
    const { native, objects, waiting } = plan
    const settled = BoundedMap.make<true>(settledLimit)

    const { ack, settle } = Settle.make({
      queue,
      settled,
      publish: (copies, confirmed) =>
        sender.sendEach(
          copies.map((copy) => ({ ...copy, plan })),
          confirmed
        ),
      toCommand: (delivery, settlement) =>
        toCommand(delivery, settlement, {
          queue,
          queueType,
          returns: receiptOf(delivery).returns,
          deliveryLimit,
          native,
          now
        })
    })

    const onDelivery = (delivery: Received): void => {
      const { receipt } = delivery
      const { copy, redelivered, settler } = receipt
      if (redelivered && copy !== undefined && settled.has(copy)) {
        if (settler.claim(receipt)) ack(settler, [receipt])
        return
      }
      if (queueType === "classic" && redelivered) return recount(delivery)
      options.onDelivery(delivery)
    }

    /**
     * Replaces a returned message by a copy that carries the count. A classic queue only knows whether a message was
     * returned, so that one which kills its process would come for ever.
     */
    const recount = (delivery: Received): void => {
      const { receipt } = delivery
      const { properties: original, settler } = receipt
      if (!settler.claim(receipt)) return
      const hop = Outgoing.hop(delivery, { delay: 0 }, queue, now())
      const message = { ...hop, metadata: { ...hop.metadata, notBefore: delivery.metadata.notBefore } }
      fork(
        Effect.matchEffect(sender.send([{ message, plan, original }]), {
          onSuccess: () => Effect.sync(() => ack(settler, [receipt])),
          onFailure: () => Effect.sync(() => settler.requeue(receipt, "Nack"))
        })
      )
    }

    const { onReconnect } = options
    const keepsNotBefore = waiting !== undefined
    const { credit } = yield* Sessions.make({ queue, objects, keepsNotBefore, onDelivery, onReconnect }, env)
    if (waiting !== undefined) yield* WaitLoop.run(plan, waiting, env)
    return { credit, settle, extend: () => Effect.succeed([]) }
  })
