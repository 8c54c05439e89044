/** Subscriptions: what the core asks of a queue, by polls and batches of calls. */
import { type Broker, type BrokerError, type Delivery, BoundedMap, Settlement, Timers } from "@requeue/core/adapter-kit"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../SqsOptions.ts"
import * as Calls from "../settle/receiptCalls.ts"
import type { Client, Message } from "../client.ts"
import * as Crowd from "./inFlightLimit.ts"
import * as Groups from "./messageGroups.ts"
import { isExpired, type Receipt, receiptOf } from "./receipt.ts"
import * as Leases from "./leases.ts"
import * as Pool from "./polls.ts"
import type { Queues } from "../declare/declare.ts"
import * as Receiver from "./receive.ts"
import type { Sender } from "../publish/publisher.ts"
import * as Settle from "../settle/settle.ts"
import * as Tally from "./remembered.ts"
import { toCommand } from "../settle/toCommand.ts"
import { receives, toDelivery } from "./toDelivery.ts"
import * as Wire from "../wire.ts"

/** Copies that are stored while their originals may be delivered once more, because the delete was lost. */
const rememberLimit = 20_000

/** What a poll may take beyond its wait before it is cut off at the end, in milliseconds. */
const grace = 1000

export interface Environment {
  readonly client: Client
  readonly settings: Settings
  readonly queues: Queues
  readonly sender: Sender
  /** Messages of a queue that are in flight, about. */
  readonly inFlight: (queue: string) => Effect.Effect<number, BrokerError.BrokerError>
}

export const subscribe = (
  options: Broker.SubscribeOptions,
  env: Environment
): Effect.Effect<Broker.Subscription, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { client, queues, sender, settings } = env
    const { deadLetterQueues, queue, retry } = options
    let found = yield* queues.ensure({ queue, retry, deadLetterQueues })
    const { fifo } = found
    const timers = yield* Timers.make
    const clock = yield* Clock.Clock
    const run = Effect.runForkWith(yield* Effect.context())
    const fork = (effect: Effect.Effect<unknown>): void => void run(effect)
    const say = (effect: Effect.Effect<void>): void => fork(Effect.annotateLogs(effect, { queue }))
    const url = () => found.url
    const calls = Calls.make({ client, queue, url, fork })
    const hand = new Set<Delivery.Delivery>()
    const copied = BoundedMap.make<true>(rememberLimit)
    const tally = Tally.make()
    const cut = new AbortController()
    const late: Array<Delivery.Delivery> = []
    let isClosed = false

    const release = (deliveries: ReadonlyArray<Delivery.Delivery>): Effect.Effect<unknown> =>
      settle(deliveries.map((delivery) => ({ delivery, settlement: Settlement.Release() })))

    /** What no handler has seen, and SQS counts all the same. */
    const giveBack = (deliveries: ReadonlyArray<Delivery.Delivery>): void => {
      for (const delivery of deliveries) tally.add(receiptOf(delivery).messageId)
      fork(release(deliveries))
    }

    const groups = fifo ? Groups.make({ hand: options.onDelivery, giveBack }) : Groups.none(options.onDelivery)

    const onEnd = (delivery: Delivery.Delivery, how: "gone" | "returned"): void => {
      hand.delete(delivery)
      if (how === "gone") tally.delete(receiptOf(delivery).messageId)
      groups[how](delivery)
      pool.refresh()
    }

    /** A delivery of ours from now on; none for a message whose copy is stored. */
    const take = (message: Message): ReadonlyArray<Delivery.Delivery> => {
      const { Attributes: system, MessageAttributes: attributes = {}, MessageId = "", ReceiptHandle = "" } = message
      if (copied.has(MessageId)) {
        fork(calls.remove([ReceiptHandle]))
        return []
      }
      const receivedAt = timers.now()
      const receipt: Receipt = {
        handle: ReceiptHandle,
        messageId: MessageId,
        group: fifo ? system?.MessageGroupId : undefined,
        receives: receives(message),
        attributes,
        receivedAt,
        leaseEnds: receivedAt + settings.visibilityTimeout,
        isUnsure: false,
        isTaken: false
      }
      const context = { uncounted: tally.of(MessageId), now: clock.currentTimeMillisUnsafe() }
      const delivery = { ...toDelivery(message, context), receipt }
      hand.add(delivery)
      return [delivery]
    }

    const crowd = Crowd.make({
      limit: settings.inFlightLimit,
      inFlight: env.inFlight(queue),
      now: timers.now,
      fork
    })

    const pool = Pool.make<Message>({
      timers,
      most: settings.pollers,
      // Of a group that waits for a retry, those behind would be received and given back each time, and SQS counts that.
      size: fifo && settings.fifoRetry === "block" ? 1 : Wire.batchLimit,
      held: () => hand.size,
      receive: Receiver.make({ client, queue, url, settings, signal: cut.signal }),
      onMessages: (messages) => {
        const deliveries = messages.flatMap(take)
        if (isClosed) late.push(...deliveries)
        else deliveries.forEach(groups.arrived)
      },
      onFailure: (error, isFirst) => {
        if (error.reason === "QueueFull") crowd.overLimit()
        if (isFirst && !isClosed) say(Effect.logWarning(`polls fail, and are repeated: ${error.message}`))
        if (error.reason === "QueueMissing") find()
      },
      onRecovery: () => say(Effect.logInfo("polls succeed again"))
    })

    /** Somebody has deleted the queue: it is made again, where it may be. */
    const find = (): void => {
      queues.forget(queue)
      const again = Effect.map(queues.ensure({ queue, retry, deadLetterQueues }), (made) => {
        found = made
      })
      fork(Effect.ignore(again))
    }

    const command = ({ delivery, settlement }: Broker.SettleRequest) => {
      const receipt = receiptOf(delivery)
      return toCommand(delivery, settlement, {
        queue,
        fifo,
        fifoRetry: settings.fifoRetry,
        elapsed: timers.now() - receipt.receivedAt,
        receives: receipt.receives,
        maxAttempts: retry.maxAttempts,
        isCrowded: !fifo && settlement._tag === "Retry" && settlement.delay > 0 && crowd.isCrowded(),
        isUnsure: receipt.isUnsure,
        now: clock.currentTimeMillisUnsafe()
      })
    }

    /** Room for what the core no longer has, and never said so: a delivery takes it as long as its lease lasts. */
    const sweep = (): void => {
      timers.after(settings.visibilityTimeout / 3, () => {
        const now = timers.now()
        for (const delivery of hand) if (isExpired(receiptOf(delivery), now)) onEnd(delivery, "returned")
        sweep()
      })
    }
    sweep()

    const settle = Settle.make({ queue, calls, sender, command, copied, onEnd, fork, now: timers.now })

    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        isClosed = true
        const ended = Effect.callback<void>((resume) => pool.close(() => resume(Effect.void)))
        yield* release([...hand].filter((delivery) => !receiptOf(delivery).isTaken))
        yield* Effect.timeoutOption(ended, Duration.millis(settings.waitTime + grace))
        cut.abort()
        yield* release(late)
        yield* calls.idle
      })
    )

    const extend = Leases.make({ queue, calls, duration: settings.visibilityTimeout, now: timers.now })
    return {
      credit: (limit) => {
        if (limit === 0) groups.clear()
        pool.credit(limit)
      },
      settle,
      extend: (deliveries) =>
        Effect.map(extend([...deliveries, ...groups.waiting()]), (failures) =>
          failures.filter(({ delivery }) => deliveries.includes(delivery))
        )
    }
  })
