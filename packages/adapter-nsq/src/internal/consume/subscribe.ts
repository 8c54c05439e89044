/** Subscriptions: what the core asks of a queue, on the sessions that attend its topics. */
import { type Broker, type BrokerError, Deadlines, type Delivery, Timers } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Plan } from "../../NsqPlan.ts"
import * as Attend from "./topics.ts"
import * as Credit from "./credit.ts"
import * as Memory from "./remembered.ts"
import type { Pool } from "../connect/publishing.ts"
import { type Sender, target } from "../publish/sender.ts"
import * as Presence from "../connect/connectionCount.ts"
import type { Receipt } from "./session.ts"
import * as Settle from "../settle/settle.ts"
import { toCommand } from "../settle/toCommand.ts"
import { toDelivery } from "./toDelivery.ts"
import { fits } from "../publish/toPublication.ts"

export interface Environment extends Attend.Environment {
  readonly pool: Pool
  readonly sender: Sender
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Those of all subscriptions. */
  readonly presences: Set<Presence.Presence>
}

export const subscribe = (
  options: Broker.SubscribeOptions,
  plan: Plan,
  env: Environment
): Effect.Effect<Broker.Subscription, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { nodes, now, pool, presences, sender, settings } = env
    const { queue } = options
    const credit = Credit.make()
    const memoryOf = Memory.make()
    const twins = settings.publishTo === 2 ? Memory.twins() : undefined

    const { extend, settle } = Settle.make({
      queue,
      deadlines: Deadlines.make(yield* Timers.make, settings.requestTimeout),
      command: (delivery, settlement) => {
        const limits = nodes.limits()
        return toCommand(delivery, settlement, {
          queue,
          retry: settings.retry,
          cap: limits.maxReqTimeout,
          deliveries: (delivery.receipt as Receipt).deliveries,
          fits: (outgoing) => fits(outgoing, limits),
          now: now()
        })
      },
      publish: ({ into, outgoing }, prefer) =>
        Effect.gen(function* () {
          const to = into === "retry" ? plan.retry : yield* target(outgoing.queue, "settle", settings)
          yield* sender.send([{ message: outgoing, target: to, isCopy: true }], { count: 1, prefer })
        }),
      finished: ({ delivery, settlement }) => {
        const { id, session } = delivery.receipt as Receipt
        memoryOf(session).finished.set(id, true)
        // A retry's copy is of the same publish, and must come.
        if (settlement._tag !== "Retry" && settlement._tag !== "Release") twins?.finished(delivery)
      },
      requeued: ({ id, session }, at) => memoryOf(session).due.remember(id, at)
    })

    const onDelivery = (delivery: Delivery.Delivery): void => {
      const { id, session } = delivery.receipt as Receipt
      const isFinished = memoryOf(session).finished.has(id) || twins?.isFinished(delivery) === true
      if (!isFinished) return options.onDelivery(delivery)
      env.fork(settle([{ delivery, settlement: { _tag: "Ack" } }]))
    }

    // Made before the first delivery, where they will be published to: a dead letter must find its queue.
    const [first] = yield* pool.pick(1)
    const { node } = first!
    yield* Effect.forEach([plan.source, plan.retry, ...plan.deadLetters], (each) => nodes.ensure(node, each), {
      discard: true,
      concurrency: "unbounded"
    })

    const presence = Presence.make(now)
    const attendance = yield* Attend.attend(
      {
        queue,
        presence,
        topics: [plan.source, plan.retry],
        credit,
        toDelivery: (frame, receipt) => ({
          ...toDelivery(frame, { now: now(), due: memoryOf(receipt.session).due.take(receipt.id) }),
          receipt
        }),
        onDelivery,
        onReconnect: options.onReconnect
      },
      env
    )
    // A topic that nobody has yet begins where this process would publish it.
    if (!attendance.isAttended(plan.source) || !attendance.isAttended(plan.retry)) yield* attendance.join(node)
    yield* attendance.ready
    yield* Effect.addFinalizer(() => Effect.sync(() => presences.delete(presence)))
    presences.add(presence)
    return { credit: credit.set, settle, extend }
  })
