/** Attends a queue: one session after another, each on a channel of its own, with the credit that was given last. */
import type { BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Incoming } from "../client.ts"
import type { Consumer } from "./credit.ts"
import type { Declarer } from "../declare/declare.ts"
import type { Link } from "../connect/connection.ts"
import type { Object } from "../declare/objects.ts"
import { persist } from "../connect/persist.ts"
import { request } from "../connect/request.ts"
import * as Session from "./session.ts"
import { toDelivery } from "./toDelivery.ts"

export interface Environment {
  readonly settings: Settings
  readonly link: Link
  readonly declarer: Declarer
  readonly uniqueName: () => string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export const attend = (
  demand: {
    readonly queue: string
    /** What must exist. */
    readonly objects: ReadonlyArray<Object>
    /** Messages that come out of a delay may still have to wait. */
    readonly keepsNotBefore: boolean
    readonly onDelivery: (delivery: Delivery.Delivery) => void
    readonly onReconnect: () => void
  },
  env: Environment
): Effect.Effect<{ readonly credit: (limit: number) => void }, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { declarer, link, now, settings } = env
    const { queue } = demand
    let limit = 0
    let session: Session.Session | undefined

    const decode = (message: Incoming, session: Session.Session, consumer: Consumer): Delivery.Delivery => {
      const decoded = toDelivery(message, { queueType: settings.queueType, keepsNotBefore: demand.keepsNotBefore, now })
      const receipt: Session.Receipt = {
        session,
        consumer,
        tag: message.fields.deliveryTag,
        state: "open",
        redelivered: message.fields.redelivered,
        returns: decoded.returns,
        copy: decoded.copy,
        properties: message.properties
      }
      const { attempts, body, headers, metadata } = decoded
      return { body, headers, attempts, metadata, receipt }
    }

    const open = Effect.gen(function* () {
      const context = { operation: "subscribe", queue }
      const live = yield* link.within(context, settings.requestTimeout)
      yield* declarer.ensure(demand.objects, queue)
      const channel = yield* request(context, settings.requestTimeout, () => live.connection.channel())
      return Session.make(channel, { queue, name: env.uniqueName, toDelivery: decode, onDelivery: demand.onDelivery })
    })

    // A server that starts takes connections before all of its queues have a leader.
    const reopen = persist(Effect.andThen(link.live, open), {
      settings,
      complaint: "not consuming",
      about: { queue }
    })

    const keep = Effect.gen(function* () {
      while (true) {
        yield* Deferred.await(session!.gone)
        session = yield* reopen
        demand.onReconnect()
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
      }
    }
  })
