/** Subscriptions: what the core asks of a queue, on the sessions that attend it. */
import { type Broker, type BrokerError, type Delivery, Outgoing, BoundedMap } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Plan } from "../../RabbitMqPlan.ts"
import * as Attend from "./sessions.ts"
import type { Properties } from "../client.ts"
import * as Rounds from "./waitLoop.ts"
import type { Receipt } from "./session.ts"
import type { Sender } from "../publish/sender.ts"
import * as Settle from "../settle/settle.ts"
import { toCommand } from "../settle/toCommand.ts"

/** Copies that are done with and may be delivered once more, because the server lost their acks in a crash. */
const rememberLimit = 20_000

export interface Environment extends Attend.Environment {
  readonly publish: (
    plan: Plan,
    copy: Outgoing.Outgoing,
    original: Properties
  ) => Effect.Effect<void, BrokerError.BrokerError>
  /** Each on its own account. */
  readonly publishEach: Sender["sendEach"]
  readonly fork: (effect: Effect.Effect<unknown>) => void
}

export const subscribe = (
  options: Broker.SubscribeOptions,
  plan: Plan,
  env: Environment
): Effect.Effect<Broker.Subscription, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { now, settings } = env
    const { queue } = options
    const done = BoundedMap.make<true>(rememberLimit)

    const { ack, settle } = Settle.make({
      queue,
      done,
      publish: (copies, confirmed) =>
        env.publishEach(
          copies.map((each) => ({ ...each, plan })),
          confirmed
        ),
      command: (delivery, settlement) =>
        toCommand(delivery, settlement, {
          queue,
          queueType: settings.queueType,
          returns: (delivery.receipt as Receipt).returns,
          deliveryLimit: settings.deliveryLimit,
          native: plan.native,
          now
        })
    })

    const onDelivery = (delivery: Delivery.Delivery): void => {
      const receipt = delivery.receipt as Receipt
      const { copy, redelivered, session } = receipt
      if (redelivered && copy !== undefined && done.has(copy)) {
        if (session.take(receipt)) ack(session, [receipt])
        return
      }
      if (settings.queueType === "classic" && redelivered) return recount(delivery, receipt)
      options.onDelivery(delivery)
    }

    /**
     * A classic queue only knows whether a message was returned, so that one which kills its process would come for
     * ever. Its copy carries the count.
     */
    const recount = (delivery: Delivery.Delivery, receipt: Receipt): void => {
      if (!receipt.session.take(receipt)) return
      const hop = Outgoing.hop(delivery, queue, 0, now())
      const copy = { ...hop, metadata: { ...hop.metadata, notBefore: delivery.metadata.notBefore } }
      env.fork(
        Effect.matchEffect(env.publish(plan, copy, receipt.properties), {
          onSuccess: () => Effect.sync(() => ack(receipt.session, [receipt])),
          onFailure: () => Effect.sync(() => receipt.session.giveBack(receipt, "Nack"))
        })
      )
    }

    const { waiting } = plan
    const { credit } = yield* Attend.attend(
      {
        queue,
        objects: plan.objects,
        keepsNotBefore: waiting !== undefined,
        onDelivery,
        onReconnect: options.onReconnect
      },
      env
    )
    if (waiting !== undefined) yield* Rounds.turn(plan, waiting, env)
    return { credit, settle, extend: () => Effect.succeed([]) }
  })
