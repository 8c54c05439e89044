/**
 * The messages of one invocation, as a subscription. It differs from a queue's subscription in two ways. Completed
 * messages are not deleted: the event source mapping deletes all messages that the response does not name. Messages
 * that could not be settled keep their visibility timeout: otherwise new invocations would hammer a queue that refuses
 * retries or dead letters.
 */
import type { Broker, Delivery } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../SqsOptions.ts"
import type { Message } from "../client.ts"
import { arrived } from "../consume/arrival.ts"
import { releases } from "../consume/inFlight.ts"
import * as Receipt from "../consume/receipt.ts"
import type { Remembered } from "../consume/remembered.ts"
import type { Sources } from "../consume/sources.ts"
import type { Publisher } from "../publish/publisher.ts"
import type { ReceiptCalls } from "../settle/receiptCalls.ts"
import * as Settle from "../settle/settle.ts"
import { type Command, toCommand } from "../settle/toCommand.ts"

/** One invocation, and the services that all invocations of the function share. */
export interface Invocation {
  readonly queue: string
  readonly fifo: boolean
  readonly settings: Settings
  readonly calls: ReceiptCalls
  readonly publisher: Publisher
  /** Includes completed messages that are redelivered because the mapping did not receive the response. */
  readonly remembered: Remembered
  readonly sources: Sources
  /** Ids of the messages that a handler has received in this invocation. */
  readonly begun: ReadonlySet<string>
}

/**
 * How long before the invocation a message may have been received, in milliseconds. A mapping gathers batches for five
 * minutes at most. https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html
 */
const batchingWindow = 360_000

/** Times in milliseconds. */
interface Clocks {
  /** Monotonic. */
  readonly elapsed: () => number
  /** Since the epoch. */
  readonly now: () => number
}

const clocks: Effect.Effect<Clocks> = Effect.map(Clock.Clock, (clock) => ({
  elapsed: () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6,
  now: () => clock.currentTimeMillisUnsafe()
}))

/** Passes deliveries to the consumer as its credit allows. */
const underCredit = (onDelivery: (delivery: Delivery.Delivery) => void) => {
  const waiting: Array<Delivery.Delivery> = []
  const inFlight = new Set<Delivery.Delivery>()
  let limit = 0
  const pump = (): void => {
    while (waiting.length > 0 && inFlight.size < limit) {
      const delivery = waiting.shift()!
      inFlight.add(delivery)
      onDelivery(delivery)
    }
  }
  return {
    /** Queues a delivery until the next change of the credit, or the end of another delivery. */
    add: (delivery: Delivery.Delivery): void => void waiting.push(delivery),
    leave: (delivery: Delivery.Delivery): void => void inFlight.delete(delivery),
    pump,
    credit: (wanted: number): void => {
      limit = wanted
      pump()
    },
    takeAll: () => waiting.splice(0),
    /** Removes and returns the deliveries of a message group. */
    takeGroup: (group: string) => {
      const taken = waiting.filter((delivery) => delivery.group === group)
      for (const delivery of taken) waiting.splice(waiting.indexOf(delivery), 1)
      return taken
    }
  }
}

/**
 * Chooses the command of each settlement. A receive that reached no handler does not count as an attempt. One whose
 * handler was interrupted at the end of the function does: otherwise the message of a handler that never ends would
 * never be dead-lettered.
 */
const commands =
  (
    { begun, fifo, queue, remembered, settings }: Invocation,
    clock: Clocks,
    { maxDeliveries }: Broker.SubscribeOptions["retry"]
  ) =>
  ({ delivery, settlement }: Broker.SettleRequest): Command => {
    const { countsHere, messageId, receivedAt, receives } = Receipt.receiptOf(delivery)
    const isBegun = begun.has(delivery.metadata.id)
    if (settlement._tag === "Release" && !isBegun) remembered.addUncounted(messageId)
    return toCommand(delivery, settlement, {
      queue,
      fifo,
      fifoRetry: settings.fifoRetry,
      elapsed: clock.elapsed() - receivedAt,
      receives,
      countsHere,
      maxDeliveries: isBegun ? Number.POSITIVE_INFINITY : maxDeliveries,
      isLimitReached: false,
      held: undefined,
      holdFor: 0,
      isLeaseUncertain: false,
      isLeft: Receipt.receiptOf(delivery).isLeft,
      isCopied: remembered.settled.has(messageId),
      now: clock.now()
    })
  }

/** Returns the delivery of an invocation's message. Its lease outlasts the function. */
const toReceived = (
  message: Message,
  { fifo, remembered, settings: { fifoRetry }, sources }: Invocation,
  clock: Clocks
): Delivery.Delivery => {
  const receivedAt = clock.elapsed() - batchingWindow
  const { count: before, isShared } = sources.before(message)
  const leaseEnds = Number.POSITIVE_INFINITY
  const receipt = Receipt.make(message, { fifo, receivedAt, leaseEnds, countsHere: !isShared })
  const uncounted = remembered.uncounted(receipt.messageId)
  return arrived(message, { uncounted, before, now: clock.now(), fifoRetry }, receipt.group, receipt)
}

/** Whether a smaller copy may follow after the failure of one of these requests. */
const mayBeSmaller = (
  { delivery, smaller }: Broker.SettleFailure,
  requests: ReadonlyArray<Broker.SettleRequest>
): boolean => {
  const settlement = requests.find((request) => request.delivery === delivery)?.settlement
  if (settlement === undefined || settlement._tag === "Ack" || settlement._tag === "Drop") return false
  return smaller === true && settlement.cut !== "all"
}

/** Opens the subscription. Calls `onEnd` once for each message, with whether it is completed or redelivered. */
export const subscribe = (
  messages: ReadonlyArray<Message>,
  options: Broker.SubscribeOptions,
  invocation: Invocation,
  onEnd: (message: Message, isDone: boolean) => void
): Effect.Effect<Broker.Subscription, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { calls, publisher, queue, remembered } = invocation
    const clock = yield* clocks
    const run = Effect.runForkWith(yield* Effect.context())
    const fork = (effect: Effect.Effect<unknown>): void => void run(effect)
    const outgoing = underCredit(options.onDelivery)
    const messageOf = new Map<Delivery.Delivery, Message>()

    const ended = (delivery: Delivery.Delivery, how: "gone" | "returned"): void => {
      const receipt = Receipt.receiptOf(delivery)
      if (how === "gone") {
        remembered.settled.set(receipt.messageId, true)
        remembered.forgetUncounted(receipt.messageId)
      }
      outgoing.leave(delivery)
      onEnd(messageOf.get(delivery)!, how === "gone")
      // After a redelivered message, SQS delivers nothing else of its group.
      const behind = how === "returned" && receipt.group !== undefined ? outgoing.takeGroup(receipt.group) : []
      if (behind.length > 0) fork(giveBack(behind))
      outgoing.pump()
    }

    const settle = Settle.make({
      queue,
      calls: { ...calls, deleteMessages: (handles) => Effect.succeed(handles.map(() => undefined)) },
      publisher,
      command: commands(invocation, clock, options.retry),
      settled: remembered.settled,
      onEnd: ended,
      onHeld: () => {},
      fork,
      now: clock.elapsed
    })

    /**
     * Returns messages that reached no handler. If this fails, they are redelivered when their visibility timeout ends.
     */
    const giveBack = (deliveries: ReadonlyArray<Delivery.Delivery>): Effect.Effect<void> =>
      Effect.map(settle(releases(deliveries)), (failures) => {
        for (const { delivery } of failures) if (!Receipt.receiptOf(delivery).isSettling) ended(delivery, "returned")
      })

    for (const message of messages) {
      const delivery = toReceived(message, invocation, clock)
      messageOf.set(delivery, message)
      if (remembered.settled.has(Receipt.receiptOf(delivery).messageId)) onEnd(message, true)
      else outgoing.add(delivery)
    }
    yield* Effect.addFinalizer(() => giveBack(outgoing.takeAll()))

    /** A message that cannot be settled is redelivered; the function need not wait. */
    const leave = (failure: Broker.SettleFailure): Broker.SettleFailure => {
      if (failure.fate === "lost") return failure
      Receipt.receiptOf(failure.delivery).isSettling = true
      ended(failure.delivery, "returned")
      return { ...failure, fate: "lost" }
    }

    return {
      credit: outgoing.credit,
      settle: (requests) =>
        Effect.map(settle(requests), (failures) =>
          failures.map((failure) => (mayBeSmaller(failure, requests) ? failure : leave(failure)))
        ),
      extend: () => Effect.succeed([]),
      identify: (delivery) => Receipt.nameOf(Receipt.receiptOf(delivery)),
      copiesRetries: invocation.fifo && invocation.settings.fifoRetry === "resend"
    }
  })
