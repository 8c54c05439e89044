/**
 * The messages of one invocation, as a subscription. It hands them out and carries out their settlements, with two
 * differences from a queue's: what is done is not deleted, since the event source mapping deletes what the answer does
 * not name; and what could not be settled keeps its visibility timeout, so that a queue that takes no retries or dead
 * letters is not hammered by new invocations.
 */
import { type Broker, type Delivery, type BoundedMap, Settlement } from "@requeue/core/adapter-kit"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../SqsOptions.ts"
import type { Calls } from "../settle/receiptCalls.ts"
import type { Message } from "../client.ts"
import * as Groups from "../consume/messageGroups.ts"
import { type Receipt, receiptOf } from "../consume/receipt.ts"
import type { Sender } from "../publish/publisher.ts"
import * as Settle from "../settle/settle.ts"
import type { Tally } from "../consume/remembered.ts"
import { toCommand } from "../settle/toCommand.ts"
import { receives, toDelivery } from "../consume/toDelivery.ts"

export interface Environment {
  readonly queue: string
  readonly fifo: boolean
  readonly settings: Settings
  readonly calls: Calls
  readonly sender: Sender
  /** Messages that are done, and may come again because the mapping did not hear of it. */
  readonly finished: BoundedMap.BoundedMap<true>
  readonly tally: Tally
  /** Ids of the messages that a handler has got in this invocation. */
  readonly begun: ReadonlySet<string>
}

/**
 * How long before the invocation a message may have been received, in milliseconds: a mapping gathers batches for five
 * minutes at most. https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html
 */
const gathering = 360_000

export const subscribe = (
  messages: ReadonlyArray<Message>,
  options: Broker.SubscribeOptions,
  env: Environment,
  /** Called once for each message: it is done, or it comes again. */
  onAnswer: (receipt: Receipt, isDone: boolean) => void
): Effect.Effect<Broker.Subscription, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { begun, calls, fifo, finished, queue, sender, settings, tally } = env
    const clock = yield* Clock.Clock
    const run = Effect.runForkWith(yield* Effect.context())
    const fork = (effect: Effect.Effect<unknown>): void => void run(effect)
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const receivedAt = now() - gathering
    const waiting: Array<Delivery.Delivery> = []
    const handed = new Set<Delivery.Delivery>()
    /** Their settlement has failed. */
    const unsettled = new Set<Delivery.Delivery>()
    let limit = 0

    const take = (message: Message): Delivery.Delivery => {
      const { MessageAttributes: attributes = {}, MessageId = "", ReceiptHandle = "" } = message
      const receipt: Receipt = {
        handle: ReceiptHandle,
        messageId: MessageId,
        group: fifo ? message.Attributes?.MessageGroupId : undefined,
        receives: receives(message),
        attributes,
        receivedAt,
        leaseEnds: Number.POSITIVE_INFINITY,
        isUnsure: false,
        isTaken: false
      }
      const context = { uncounted: tally.of(MessageId), now: clock.currentTimeMillisUnsafe() }
      return { ...toDelivery(message, context), receipt }
    }

    const pump = (): void => {
      while (waiting.length > 0 && handed.size < limit) {
        const delivery = waiting.shift()!
        handed.add(delivery)
        options.onDelivery(delivery)
      }
    }

    const onEnd = (delivery: Delivery.Delivery, how: "gone" | "returned"): void => {
      const receipt = receiptOf(delivery)
      if (how === "gone") {
        finished.set(receipt.messageId, true)
        tally.delete(receipt.messageId)
      }
      handed.delete(delivery)
      onAnswer(receipt, how === "gone")
      groups[how](delivery)
      pump()
    }

    /**
     * A receive that reached no handler is not held against the message. One whose handler was cut off by the end of
     * the function is, else a handler that never ends would never be given up.
     */
    const command = ({ delivery, settlement }: Broker.SettleRequest) => {
      const receipt = receiptOf(delivery)
      const isBegun = begun.has(delivery.metadata.id)
      if (settlement._tag === "Release" && !isBegun) tally.add(receipt.messageId)
      return toCommand(delivery, settlement, {
        queue,
        fifo,
        fifoRetry: settings.fifoRetry,
        elapsed: now() - receipt.receivedAt,
        receives: receipt.receives,
        maxAttempts: isBegun ? Number.POSITIVE_INFINITY : options.retry.maxAttempts,
        isCrowded: false,
        isUnsure: false,
        now: clock.currentTimeMillisUnsafe()
      })
    }

    const settle = Settle.make({
      queue,
      calls: { ...calls, remove: (handles) => Effect.succeed(handles.map(() => undefined)) },
      sender,
      command,
      copied: finished,
      onEnd,
      fork,
      now
    })

    /** What no handler has seen; where even that fails, its visibility timeout brings it back. */
    const giveBack = (deliveries: ReadonlyArray<Delivery.Delivery>): Effect.Effect<void> =>
      Effect.map(settle(deliveries.map((delivery) => ({ delivery, settlement: Settlement.Release() }))), (failures) => {
        for (const { delivery } of failures) if (!receiptOf(delivery).isTaken) onEnd(delivery, "returned")
      })

    const wait = (delivery: Delivery.Delivery): void => void waiting.push(delivery)
    const groups = fifo ? Groups.make({ hand: wait, giveBack: (some) => fork(giveBack(some)) }) : Groups.none(wait)

    for (const delivery of messages.map(take)) {
      if (finished.has(receiptOf(delivery).messageId)) onAnswer(receiptOf(delivery), true)
      else groups.arrived(delivery)
    }
    yield* Effect.addFinalizer(() => giveBack([...waiting.splice(0), ...groups.waiting()]))

    /** The core gives back what could not be settled otherwise: that is left alone. */
    const isLeft = ({ delivery, settlement }: Broker.SettleRequest): boolean =>
      settlement._tag === "Release" && unsettled.has(delivery)

    return {
      credit: (wanted) => {
        limit = wanted
        pump()
      },
      settle: (requests) =>
        Effect.suspend(() => {
          for (const request of requests) if (isLeft(request)) onEnd(request.delivery, "returned")
          return Effect.map(settle(requests.filter((request) => !isLeft(request))), (failures) => {
            for (const { delivery } of failures) unsettled.add(delivery)
            return failures
          })
        }),
      extend: () => Effect.succeed([])
    }
  })
