/** Subscriptions: each has a channel, and another one when that is gone. */
import type { BrokerError } from "@requeue/core/BrokerError"
import type { SubscribeOptions, Subscription } from "@requeue/core/Broker"
import type { Delivery } from "@requeue/core/Delivery"
import * as Outgoing from "@requeue/core/Outgoing"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../RabbitMqOptions.ts"
import type { Plan } from "../RabbitMqPlan.ts"
import type { Incoming, Properties } from "./client.ts"
import type { Declarer } from "./declarer.ts"
import type { Link } from "./link.ts"
import * as Remembered from "./remembered.ts"
import { request } from "./request.ts"
import * as Session from "./session.ts"
import * as Settle from "./settle.ts"
import { toCommand } from "./toCommand.ts"
import { toDelivery } from "./toDelivery.ts"

/** Copies that are done with and may be delivered once more, because the server lost their acks in a crash. */
const rememberLimit = 20_000

export interface Environment {
  readonly settings: Settings
  readonly serverVersion: () => string
  readonly link: Link
  readonly declarer: Declarer
  readonly publish: (plan: Plan, copy: Outgoing.Outgoing, original: Properties) => Effect.Effect<void, BrokerError>
  readonly uniqueName: () => string
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly fork: (effect: Effect.Effect<unknown>) => void
}

export const subscribe = (
  options: SubscribeOptions,
  plan: Plan,
  env: Environment
): Effect.Effect<Subscription, BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { declarer, link, now, settings } = env
    const { queue } = options
    const done = Remembered.make(rememberLimit)
    let limit = 0
    let session: Session.Session | undefined

    const { answer, settle } = Settle.make({
      queue,
      done,
      publish: (copy, original) => env.publish(plan, copy, original),
      command: (delivery, settlement) =>
        toCommand(delivery, settlement, {
          queue,
          queueType: settings.queueType,
          returns: (delivery.receipt as Session.Receipt).returns,
          deliveryLimit: settings.deliveryLimit,
          native: plan.native,
          now: now()
        })
    })

    const onDelivery = (delivery: Delivery): void => {
      const receipt = delivery.receipt as Session.Receipt
      const { redelivered } = receipt
      if (redelivered && receipt.copy !== undefined && done.has(receipt.copy)) {
        if (receipt.session.take(receipt)) answer(receipt, "Ack")
        return
      }
      if (settings.queueType === "classic" && redelivered) return recount(delivery, receipt)
      options.onDelivery(delivery)
    }

    /**
     * A classic queue only knows whether a message was returned, so that one which kills its process would come for
     * ever. Its copy carries the count.
     */
    const recount = (delivery: Delivery, receipt: Session.Receipt): void => {
      if (!receipt.session.take(receipt)) return
      const copy = Outgoing.hop(delivery, queue, 0, now())
      const kept = { ...copy, metadata: { ...copy.metadata, notBefore: delivery.metadata.notBefore } }
      env.fork(
        Effect.matchEffect(env.publish(plan, kept, receipt.properties), {
          onSuccess: () => Effect.sync(() => answer(receipt, "Ack")),
          onFailure: () => Effect.sync(() => answer(receipt, "Nack"))
        })
      )
    }

    const decode = (message: Incoming, receipt: Omit<Session.Receipt, "returns" | "copy">): Delivery => {
      const { copy, returns, ...delivery } = toDelivery(message, {
        queueType: settings.queueType,
        serverVersion: env.serverVersion(),
        keepsNotBefore: plan.waiting !== undefined,
        now: now()
      })
      return { ...delivery, receipt: { ...receipt, returns, copy } satisfies Session.Receipt }
    }

    const open = Effect.gen(function* () {
      const context = { operation: "subscribe", queue }
      const live = yield* link.within(context, settings.requestTimeout)
      yield* declarer.ensure(plan.objects, queue)
      const channel = yield* request(context, settings.requestTimeout, () => live.connection.channel())
      return Session.make(channel, {
        queue,
        name: env.uniqueName,
        toDelivery: decode,
        onDelivery
      })
    })

    const reopen: Effect.Effect<Session.Session> = Effect.suspend(() =>
      Effect.andThen(link.live, open).pipe(
        Effect.tapError((error) =>
          Effect.annotateLogs(Effect.logWarning("not consuming"), { queue, error: error.message })
        ),
        // A broker that starts takes connections before all of its queues have a leader.
        Effect.catch(() => Effect.andThen(Effect.sleep(Duration.millis(100)), reopen))
      )
    )

    const keep = Effect.gen(function* () {
      while (true) {
        yield* Deferred.await(session!.gone)
        session = yield* reopen
        options.onReconnect()
        session.credit.set(limit)
      }
    })

    session = yield* open
    const close = Effect.suspend(() =>
      session?.isOpen() === true
        ? Effect.ignore(request({ operation: "unsubscribe", queue }, 2000, session.close))
        : Effect.void
    )
    yield* Effect.addFinalizer(() => close)
    yield* Effect.forkScoped(keep)

    return {
      credit: (wanted) => {
        limit = wanted
        session?.credit.set(wanted)
      },
      settle,
      extend: () => Effect.succeed([])
    }
  })

