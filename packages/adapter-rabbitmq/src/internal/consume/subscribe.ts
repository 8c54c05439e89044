/** Opens a subscription: the sessions of its queue, and the settling of its deliveries. */
import type { Broker, BrokerError, Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Plan } from "../../RabbitMqPlan.ts"
import * as Settle from "../settle/settle.ts"
import { mustReplace, toCommand } from "../settle/toCommand.ts"
import * as HandedOut from "./handedOut.ts"
import { identityOf, originalOf, type Received, receiptOf } from "./receipt.ts"
import * as Sessions from "./sessions.ts"
import * as WaitLoop from "./waitLoop.ts"

/**
 * Replaces a returned message with a copy that carries the count, if the server would not count further. Otherwise a
 * message that crashes its process would be redelivered forever, or the server would dead-letter it early. If no copy
 * can be made, the message is delivered as it is.
 */
const replacer =
  (
    { fork, sender }: Pick<WaitLoop.Dependencies, "fork" | "sender">,
    names: HandedOut.HandedOut,
    queue: string,
    deliver: (delivery: Received) => void
  ) =>
  (delivery: Received, plan: Plan, isLimited: boolean): void => {
    const { body, headers, metadata, receipt } = delivery
    const { formerReturns = 0, isUncounted, settler } = receipt
    if (!settler.claim(receipt)) return
    const name = identityOf(delivery)
    const message = { queue, body, headers, delay: 0, metadata }
    const returns = isUncounted ? (isLimited ? 0 : undefined) : formerReturns + receipt.returns
    const copied = Effect.suspend(() => {
      if (name !== undefined) names.replacing(name)
      return sender.send([{ message, plan, original: originalOf(receipt), returns }])
    })
    // Without a copy, the server would not count the next return.
    const sent = Sessions.foundOut(copied)
    const onFailure = (): void => {
      settler.unclaim(receipt)
      if (settler.isOpen()) deliver(delivery)
    }
    fork(Effect.match(sent, { onSuccess: () => settler.ack([receipt]), onFailure }))
  }

/** Forks into the subscription: a copy that is not stored when it ends is withdrawn, and the original is redelivered. */
const scopedFork = (fork: WaitLoop.Dependencies["fork"]): Effect.Effect<typeof fork, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => (effect) => fork(Effect.forkIn(effect, scope, { startImmediately: true })))

/** Consumes a planned queue until the scope closes. */
export const subscribe = (
  options: Broker.SubscribeOptions,
  planned: Plan,
  env: WaitLoop.Dependencies & {
    /** Plans the queue again after it may have been deleted and recreated with other arguments. */
    readonly replan: Effect.Effect<Plan, BrokerError.BrokerError>
    /**
     * Plans the queue as it is now, because its limit may have changed. `undefined` if the server does not describe it.
     */
    readonly inspected: Effect.Effect<Plan | undefined, BrokerError.BrokerError>
  }
): Effect.Effect<Broker.Subscription, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { fork, inspected, now, replan, sender } = env
    const { onReconnect, queue, retry } = options
    const { waiting } = planned
    let plan = planned
    /** Whether the policy limits deliveries. */
    const isLimited = retry.maxDeliveries !== Number.POSITIVE_INFINITY
    const names = HandedOut.make()
    const identify = (delivery: Delivery.Delivery): string | undefined => {
      const name = identityOf(delivery)
      return name === undefined || names.isRepeated(name) ? undefined : name
    }

    const isSettled = (delivery: Delivery.Delivery): boolean => {
      const name = delivery.redelivered === true ? identityOf(delivery) : undefined
      return name !== undefined && names.isSettled(name)
    }

    const deliver = (delivery: Received): void => {
      const { receipt } = delivery
      if (!isSettled(delivery)) options.onDelivery(delivery)
      else if (receipt.settler.claim(receipt)) receipt.settler.ack([receipt])
    }
    // Its replacement may be settled although the server's answer to it was lost.
    const replace = replacer(env, names, queue, deliver)

    const settle = Settle.make({
      queue,
      fork: yield* scopedFork(fork),
      settled: names.settled,
      publish: (copies, confirmed) =>
        sender.sendEach(
          copies.map((copy) => ({ ...copy, plan })),
          confirmed
        ),
      toCommand: (delivery, settlement) => {
        const { isUncounted, returns } = receiptOf(delivery)
        const { found, native } = plan
        const counted = { returns, isUncounted, deliveryLimit: found.deliveryLimit }
        const facts = { queue, type: found.type, isSettled: isSettled(delivery), ...counted, native, now }
        return toCommand(delivery, settlement, facts)
      }
    })

    const onDelivery = (delivery: Received): void => {
      const { receipt } = delivery
      const { isUncounted, message, returns } = receipt
      const { deliveryLimit, type } = plan.found
      const formerReturns = receipt.formerReturns ?? 0
      const name = identityOf(delivery)
      // Its attempts stay, with the returns in its header: they are its own, or those of an equal message.
      if (!message.fields.redelivered && name !== undefined && !names.first(name, formerReturns))
        return options.onDelivery({ ...delivery, native: delivery.native, redelivered: false })
      const isReplaced = mustReplace({ type, returns, isUncounted, deliveryLimit, isLimited })
      if (isReplaced && !isSettled(delivery)) replace(delivery, plan, isLimited)
      else deliver(delivery)
    }

    const keepsNotBefore = waiting !== undefined
    const again = Effect.tap(replan, (found) => Effect.sync(() => (plan = found)))
    const look = Effect.map(inspected, (found) => void (plan = found ?? plan))
    const target = { first: planned, again, look }
    const { credit, trouble } = yield* Sessions.make({ ...target, keepsNotBefore, onDelivery, onReconnect }, env)
    if (waiting !== undefined) yield* WaitLoop.run(planned, waiting, env)
    return { credit, settle, extend: () => Effect.succeed([]), identify, trouble }
  })
