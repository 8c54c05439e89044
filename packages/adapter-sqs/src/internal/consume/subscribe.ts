/** Subscriptions: long polls under the credit, and settlements in batches of calls. */
import { type Broker, type BrokerError, type Delivery, EventLoop, Timers } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../SqsOptions.ts"
import type { Client, Message } from "../client.ts"
import type { Queues } from "../declare/declare.ts"
import * as Limits from "../limits.ts"
import type { Publisher } from "../publish/publisher.ts"
import * as ReceiptCalls from "../settle/receiptCalls.ts"
import * as Settle from "../settle/settle.ts"
import { type Command, toCommand } from "../settle/toCommand.ts"
import * as Guard from "./guard.ts"
import * as InFlight from "./inFlight.ts"
import * as InFlightLimit from "./inFlightLimit.ts"
import * as Leases from "./leases.ts"
import * as Polls from "./polls.ts"
import { nameOf, receiptOf } from "./receipt.ts"
import * as Receive from "./receive.ts"
import type * as Remembered from "./remembered.ts"
import * as Sources from "./sources.ts"
import * as Troubles from "./troubles.ts"

/** Milliseconds that a poll may exceed its time, for the network. */
const grace = 500

/** Milliseconds to return messages at the end. SQS redelivers the others when their leases end. */
const lastGrace = 2000

interface Dependencies {
  readonly client: Client
  readonly settings: Settings
  readonly queues: Queues
  readonly publisher: Publisher
  readonly remembered: (queue: string) => Remembered.Remembered
  /** Returns the approximate number of messages in flight. */
  readonly countInFlight: (queue: string) => Effect.Effect<number, BrokerError.BrokerError>
}

/** The queue that a subscription reads, and the services that its parts share. */
type Source = Effect.Success<ReturnType<typeof open>>

/** Creates or verifies all queues of the consumer. Fails if they do not fit its policy. */
const open = Effect.fnUntraced(function* (
  { deadLetterQueues, queue, retry }: Broker.SubscribeOptions,
  { client, queues, settings }: Dependencies
) {
  const ensure = queues.ensure({ queue, retry, deadLetterQueues })
  let found = yield* ensure
  const timers = yield* Timers.make
  const clock = yield* Clock.Clock
  const context = yield* Effect.context()
  const runFork = Effect.runForkWith(context)
  const fork = (effect: Effect.Effect<unknown>): void => void runFork(effect)
  return {
    queue,
    fifo: found.fifo,
    url: () => found.url,
    /** Recreates a deleted queue, if allowed. */
    restore: () => {
      queues.forget(queue)
      fork(Effect.ignore(Effect.map(ensure, (made) => (found = made))))
    },
    client,
    settings,
    timers,
    sources: Sources.make(client, timers.now, retry.maxDeliveries),
    /** Milliseconds since the epoch. */
    now: () => clock.currentTimeMillisUnsafe(),
    fork,
    run: Effect.runPromiseWith(context)
  }
})

/** Chooses the command of each settlement. */
const commands =
  (
    { fifo, now, queue, settings, timers }: Source,
    limit: InFlightLimit.InFlightLimit,
    settled: Remembered.Remembered["settled"],
    { maxDeliveries }: Broker.SubscribeOptions["retry"],
    holdFor: () => number
  ) =>
  ({ delivery, settlement }: Broker.SettleRequest): Command => {
    const { countsHere, heldUntil, isLeft, leaseError, messageId, receivedAt, receives } = receiptOf(delivery)
    return toCommand(delivery, settlement, {
      queue,
      fifo,
      fifoRetry: settings.fifoRetry,
      elapsed: timers.now() - receivedAt,
      receives,
      countsHere,
      maxDeliveries,
      isLimitReached: !fifo && settlement._tag === "Retry" && settlement.delay > 0 && limit.isReached(),
      // A hidden message on a FIFO queue blocks the later ones of its group.
      holdFor: fifo ? 0 : holdFor(),
      held: heldUntil === undefined ? undefined : Math.max(0, heldUntil - timers.now()),
      isLeaseUncertain: leaseError !== undefined,
      isLeft,
      isCopied: settled.has(messageId),
      now: now()
    })
  }

/** Polls the queue. Messages that polls receive after the close are returned. */
const poll = (
  source: Source,
  inFlight: InFlight.InFlight,
  limit: InFlightLimit.InFlightLimit,
  mayPoll: () => boolean,
  { maxBatchSize = 1, onDelivery }: Broker.SubscribeOptions
) => {
  const { fifo, settings, timers } = source
  const trouble = Troubles.make(source)
  let isClosed = false

  const polls = Polls.make<Message>({
    timers,
    maxPolls: settings.pollers,
    waitTime: settings.waitTime,
    // While a message waits for its retry, later messages of its group outside its batch would be received and returned
    // each time, and SQS counts these receives.
    pollSize: fifo && settings.fifoRetry === "block" ? Math.min(maxBatchSize, Limits.batch) : Limits.batch,
    inFlight: inFlight.size,
    held: inFlight.heldCount,
    mayPoll,
    receive: Receive.make({ ...source, elapsed: timers.now }),
    onMessages: (messages) => {
      const deliveries = messages.flatMap((message) => inFlight.received(message) ?? [])
      if (isClosed) inFlight.giveBack(deliveries)
      else for (const delivery of deliveries) onDelivery(delivery)
    },
    onFailure: (error) => {
      if (isClosed) return
      if (error.reason === "QueueFull") limit.overLimit()
      trouble.failed(error)
      if (error.reason === "QueueMissing") source.restore()
    },
    onSuccess: trouble.over
  })

  /**
   * Waits for polls that end soon. Other polls continue: while the broker is open, their messages are returned. A poll
   * of a FIFO queue would receive returned messages, which blocks their group.
   */
  const close = Effect.suspend(() => {
    isClosed = true
    const ended = Effect.callback<void>((resume) => polls.close(() => resume(Effect.void)))
    const left = polls.endsIn()
    const wait = left > Polls.soon ? (fifo ? Polls.soon : 0) : left + grace
    return Effect.timeoutOption(ended, Duration.millis(wait))
  })
  return { ...polls, trouble: trouble.current, close }
}

/** Opens a subscription. Fails if its queues are missing or do not fit the policy. */
export const subscribe = (
  options: Broker.SubscribeOptions,
  dependencies: Dependencies
): Effect.Effect<Broker.Subscription, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { countInFlight, publisher } = dependencies
    const source = yield* open(options, dependencies)
    const { fifo, fork, queue, settings, timers } = source
    const now = timers.now
    const remembered = dependencies.remembered(queue)
    const { settled } = remembered
    const trouble = Troubles.make(source)
    const guard = Guard.make({ ...source, trouble, onOpen: () => polls.refresh() })
    const calls = ReceiptCalls.make({ ...source, onFailure: guard.failed })
    const limit = InFlightLimit.make({ limit: settings.inFlightLimit, count: countInFlight(queue), now, fork })

    const release = (deliveries: ReadonlyArray<Delivery.Delivery>) => settle(InFlight.releases(deliveries))
    const inFlight = InFlight.make({
      ...source,
      remembered,
      onEnd: EventLoop.atEndOfJob(() => polls.refresh()),
      release: (deliveries) => fork(release(deliveries)),
      discard: ({ ReceiptHandle = "" }) => fork(calls.deleteMessages([ReceiptHandle]))
    })
    const polls = poll(source, inFlight, limit, guard.mayPoll, options)
    const command = commands(source, limit, settled, options.retry, polls.holdFor)
    const { ended: onEnd, held: onHeld } = inFlight
    const settle = Settle.make({ queue, calls, publisher, command, settled, onEnd, onHeld, fork, now })
    const extend = Leases.make({ queue, calls, duration: settings.visibilityTimeout, now })

    const giveBack = Effect.suspend(() =>
      release(inFlight.deliveries().filter((delivery) => !receiptOf(delivery).isSettling))
    )
    // On a standard queue, the polls would receive returned messages again.
    const first = Effect.all([polls.close, fifo ? giveBack : Effect.void], { concurrency: "unbounded" })
    const end = Effect.all([first, giveBack, calls.idle], { discard: true })
    yield* Effect.addFinalizer(() => Effect.timeoutOption(end, Duration.millis(lastGrace)))
    yield* guard.check
    return {
      credit: polls.credit,
      settle,
      extend,
      identify: (delivery) => nameOf(receiptOf(delivery)),
      copiesRetries: fifo && settings.fifoRetry === "resend",
      trouble: () => trouble.current() ?? polls.trouble()
    }
  })
