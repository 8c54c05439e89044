/** Subscriptions: what the core asks of a queue, on the sessions that attend its topics. */
import type { BrokerError } from "@requeue/core/BrokerError"
import type { SubscribeOptions, Subscription } from "@requeue/core/Broker"
import type { Delivery } from "@requeue/core/Delivery"
import * as Remembered from "@requeue/core/Remembered"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Plan } from "../NsqPlan.ts"
import * as Attend from "./attend.ts"
import * as Credit from "./credit.ts"
import * as Due from "./due.ts"
import type { Pool } from "./pool.ts"
import { type Sender, target } from "./sender.ts"
import type { Receipt } from "./session.ts"
import * as Settle from "./settle.ts"
import { toCommand } from "./toCommand.ts"
import { toDelivery } from "./toDelivery.ts"
import { fits } from "./toPublication.ts"

/** Requeued messages whose time is remembered. */
const requeuedLimit = 100_000

/** Messages that are done with and may come once more: nsqd has not heard of it, or another nsqd has their twin. */
const doneLimit = 20_000

export interface Environment extends Attend.Environment {
  readonly pool: Pool
  readonly sender: Sender
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** The same for both copies of one publish. */
const publishOf = ({ metadata: { firstPublished, id, redrives } }: Delivery): string =>
  `${firstPublished} ${redrives} ${id}`

const isFinal: ReadonlySet<string> = new Set(["Ack", "Drop", "DeadLetter"])

export const subscribe = (
  options: SubscribeOptions,
  plan: Plan,
  env: Environment
): Effect.Effect<Subscription, BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { nodes, now, pool, sender, settings } = env
    const { queue } = options
    const credit = Credit.make()
    const due = Due.make(requeuedLimit)
    const done = Remembered.make(doneLimit)
    const ended = Remembered.make(settings.publishTo === 2 ? doneLimit : 0)
    const keyOf = ({ id, session }: Receipt): string => `${session.node.name} ${id}`

    const { extend, settle } = Settle.make({
      queue,
      timeout: settings.requestTimeout,
      command: (delivery, settlement) => {
        if (isFinal.has(settlement._tag)) ended.add(publishOf(delivery))
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
      finished: (receipt) => done.add(keyOf(receipt)),
      requeued: (receipt, at) => due.remember(keyOf(receipt), at)
    })

    const onDelivery = (delivery: Delivery): void => {
      const isDone = done.has(keyOf(delivery.receipt as Receipt)) || ended.has(publishOf(delivery))
      if (!isDone) return options.onDelivery(delivery)
      env.fork(settle([{ delivery, settlement: { _tag: "Ack" } }]))
    }

    // Made before the first delivery, where they will be published to: a dead letter must find its queue.
    const [first] = yield* pool.pick(1)
    const { node } = first!
    yield* Effect.forEach([plan.source, plan.retry, ...plan.deadLetters], (each) => nodes.ensure(node, each), {
      discard: true,
      concurrency: "unbounded"
    })

    const attendance = yield* Attend.attend(
      {
        queue,
        topics: [plan.source, plan.retry],
        credit,
        toDelivery: (frame, receipt) => ({
          ...toDelivery(frame, { now: now(), due: due.take(keyOf(receipt)) }),
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
    return { credit: credit.set, settle, extend }
  })
