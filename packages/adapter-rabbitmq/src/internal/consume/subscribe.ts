/** Opens a subscription: the sessions of its queue, and the settling of their deliveries. */
import { BoundedMap, type Broker, type BrokerError, type Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Plan } from "../../RabbitMqPlan.ts"
import * as Settle from "../settle/settle.ts"
import { mustReplace, toCommand } from "../settle/toCommand.ts"
import { identityOf, type Received, receiptOf } from "./receipt.ts"
import * as Sessions from "./sessions.ts"
import * as WaitLoop from "./waitLoop.ts"

/** Settled copies that are remembered: the server delivers them again if it lost their acks in a crash. */
const settledLimit = 20_000

/** Consumes a planned queue for as long as the scope lives. */
export const subscribe = (
  options: Broker.SubscribeOptions,
  planned: Plan,
  env: WaitLoop.Dependencies & {
    /** Plans the queue again: it may have been deleted, and made otherwise. */
    readonly replan: Effect.Effect<Plan, BrokerError.BrokerError>
  }
): Effect.Effect<Broker.Subscription, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { fork, now, replan, sender } = env
    const { onReconnect, queue } = options
    const { waiting } = planned
    let plan = planned
    const settled = BoundedMap.make<true>(settledLimit)

    const isSettled = (delivery: Delivery.Delivery): boolean => {
      if (delivery.redelivered !== true || settled.isEmpty()) return false
      const name = identityOf(delivery)
      return name !== undefined && settled.has(name)
    }

    const settle = Settle.make({
      queue,
      settled,
      publish: (copies, confirmed) =>
        sender.sendEach(
          copies.map((copy) => ({ ...copy, plan })),
          confirmed
        ),
      toCommand: (delivery, settlement) => {
        const { returns } = receiptOf(delivery)
        const {
          found: { deliveryLimit, type },
          native
        } = plan
        const facts = { queue, type, isSettled: isSettled(delivery), returns, deliveryLimit, native, now }
        return toCommand(delivery, settlement, facts)
      }
    })

    const onDelivery = (delivery: Received): void => {
      const { receipt } = delivery
      const { returns, settler } = receipt
      const { deliveryLimit, type } = plan.found
      if (isSettled(delivery)) {
        if (settler.claim(receipt)) settler.ack([receipt])
      } else if (mustReplace({ type, returns, deliveryLimit })) replace(delivery)
      else options.onDelivery(delivery)
    }

    /**
     * Replaces a returned message by a copy that carries the count, where the server would count no further: a message
     * that kills its process would come for ever, or be given up. Where no copy can be made, it is delivered as it is.
     */
    const replace = (delivery: Received): void => {
      const { body, headers, metadata, receipt } = delivery
      const { formerReturns, properties: original, returns, settler } = receipt
      if (!settler.claim(receipt)) return
      const message = { queue, body, headers, delay: 0, metadata }
      const sent = sender.send([{ message, plan, original, returns: formerReturns + returns }])
      const deliver = (): void => {
        settler.unclaim(receipt)
        if (settler.isOpen()) options.onDelivery(delivery)
      }
      fork(Effect.match(sent, { onSuccess: () => settler.ack([receipt]), onFailure: deliver }))
    }

    const keepsNotBefore = waiting !== undefined
    const again = Effect.tap(replan, (found) => Effect.sync(() => (plan = found)))
    const { credit } = yield* Sessions.make({ first: planned, again, keepsNotBefore, onDelivery, onReconnect }, env)
    if (waiting !== undefined) yield* WaitLoop.run(planned, waiting, env)
    return { credit, settle, extend: () => Effect.succeed([]), identify: identityOf }
  })
