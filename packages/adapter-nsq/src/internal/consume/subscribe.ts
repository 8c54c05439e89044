/** Opens a subscription to a queue. */
import { type Broker, BrokerError, Deadlines, type Delivery, Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Plan } from "../../NsqPlan.ts"
import * as ConnectionCount from "../connect/connectionCount.ts"
import type { Publishing } from "../connect/publishing.ts"
import type { Declare } from "../declare/declare.ts"
import { queuesOf } from "../declare/objects.ts"
import { type Sender, target } from "../publish/sender.ts"
import * as Settle from "../settle/settle.ts"
import { toCommand } from "../settle/toCommand.ts"
import * as Credit from "./credit.ts"
import { receiptOf } from "./receipt.ts"
import * as Remembered from "./remembered.ts"
import { toDelivery } from "./toDelivery.ts"
import * as Topics from "./topics.ts"
import * as Troubles from "./troubles.ts"

interface SubscribeDependencies extends Topics.TopicsDependencies {
  readonly publishing: Publishing
  readonly declare: Declare
  readonly sender: Sender
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** The connection counts of all subscriptions. */
  readonly connectionCounts: Set<ConnectionCount.ConnectionCount>
}

/**
 * Subscribes to the topics of a plan, and creates missing ones. Ends after the first attempts to connect; fails if one
 * of them was refused, or all failed.
 */
export const subscribe = (
  options: Broker.SubscribeOptions,
  plan: Plan,
  dependencies: SubscribeDependencies
): Effect.Effect<Broker.Subscription, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { connectionCounts, declare, elapsed, fork, now, publishing, settings } = dependencies
    const { queue } = options
    const credit = Credit.ticking(yield* Timers.make)
    const remembered = Remembered.make()
    const duplicates = Remembered.makeDuplicates()
    const deadlines = Deadlines.make(yield* Timers.make, settings.requestTimeout)
    const scope = yield* Effect.scope
    // What is not stored when the subscription ends is withdrawn: the original is redelivered.
    // Started immediately, or copies of one call would not leave in one turn and share commands.
    const scoped = {
      ...dependencies,
      fork: (effect: Effect.Effect<unknown>) => fork(Effect.forkIn(effect, scope, { startImmediately: true }))
    }
    const { extend, settle } = makeSettle(queue, plan, deadlines, remembered, duplicates, scoped)

    const onDelivery = (delivery: Delivery.Delivery): void => {
      const receipt = receiptOf(delivery)
      if (!remembered.isFinished(receipt.name) && !duplicates.takeFinished(receipt)) return options.onDelivery(delivery)
      fork(settle([{ delivery, settlement: { _tag: "Ack" } }]))
    }

    const [first] = yield* publishing.pick(1)
    const { node } = first!
    const connectionCount = ConnectionCount.make(now)
    const topics = yield* Topics.open(
      [plan.source, plan.retry],
      {
        queue,
        connectionCount,
        credit,
        sessions: new Set(),
        decode: (frame, session) => {
          const [wall, monotonic] = [now(), elapsed()]
          const due = remembered.takeDue(frame.name)
          const { clock } = session.node
          clock.stored(Number(frame.timestamp / 1_000_000n), monotonic)
          return toDelivery(frame, {
            now: wall,
            nsqdNow: clock.now(wall, monotonic),
            due: due === undefined ? undefined : wall + Math.max(0, due - monotonic)
          })
        },
        isFinished: remembered.isFinished,
        onDelivery,
        onReconnect: options.onReconnect,
        onRefused: options.onRefused
      },
      dependencies
    )
    // A topic that no nsqd has is consumed on the nsqd to which this process would publish it.
    if (!topics.isJoined(plan.source) || !topics.isJoined(plan.retry)) yield* topics.join(node)
    yield* topics.ready
    // Created before the first delivery, on an nsqd that has the topic: dead letters need their channel.
    const places = topics.connected(plan.source)
    const place = places.includes(node) ? node : (places[0] ?? node)
    yield* Effect.forEach(queuesOf(plan), (each) => declare(place, each), { discard: true, concurrency: "unbounded" })
    const { current: trouble } = yield* Troubles.watch(queue, [plan.source, plan.retry], topics, dependencies)
    yield* Effect.addFinalizer(() => Effect.sync(() => connectionCounts.delete(connectionCount)))
    connectionCounts.add(connectionCount)
    const identify = (delivery: Delivery.Delivery) => receiptOf(delivery).name
    return { credit: credit.set, settle, extend, identify, trouble, copiesRetries: settings.retry === "exact" }
  })

/** Settles the deliveries of one subscription, and remembers the settled messages. */
const makeSettle = (
  queue: string,
  plan: Plan,
  deadlines: Deadlines.Deadlines,
  remembered: Remembered.Remembered,
  duplicates: Remembered.FinishedDuplicates,
  { elapsed, fork, nodes, now, sender, settings }: SubscribeDependencies
) =>
  Settle.make({
    queue,
    deadlines,
    fork,
    command: (delivery, settlement) => {
      const receipt = receiptOf(delivery)
      return toCommand(delivery, settlement, () => ({
        queue,
        retry: settings.retry,
        cap: nodes.limits().maxReqTimeout,
        deliveries: receipt.deliveries,
        isFinished: remembered.isFinished(receipt.name),
        now: now()
      }))
    },
    publish: ({ into, isHop, outgoing }, { nonce, session }) =>
      Effect.gen(function* () {
        const isRetry = into === "retry"
        const to = isRetry ? plan.retry : target(outgoing.queue, "settle", settings)
        if (to instanceof BrokerError.BrokerError) return yield* to
        // With a nonce, dead letters of several channels would count as duplicates in another queue.
        const item = { message: outgoing, target: to, isCopy: true, isHop, nonce: isRetry ? nonce : undefined }
        yield* sender.send([item], { count: 1, prefer: session.node })
      }),
    finished: ({ delivery, settlement }) => {
      const receipt = receiptOf(delivery)
      remembered.finished(receipt)
      // The copy for a retry or release has the same nonce, and must run.
      if (settlement._tag !== "Retry" && settlement._tag !== "Release") duplicates.finished(receipt)
    },
    requeued: (receipt, wait) => remembered.requeued(receipt, elapsed() + wait)
  })
