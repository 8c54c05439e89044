/**
 * Browses a queue: receives messages page by page, holds them, and removes the chosen ones. SQS counts the receives. Of
 * a FIFO group it shows the messages of one receive, and the rest once these are removed.
 */
import { type Broker, BrokerError, type Delivery, Timers } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../SqsOptions.ts"
import type { Client, Message } from "../client.ts"
import { arrived } from "../consume/arrival.ts"
import * as Originals from "../consume/originals.ts"
import { nameOf, receiptOf } from "../consume/receipt.ts"
import * as Receive from "../consume/receive.ts"
import type { Sources } from "../consume/sources.ts"
import type { Queues } from "../declare/declare.ts"
import * as Limits from "../limits.ts"
import * as Names from "../names.ts"
import * as ReceiptCalls from "../settle/receiptCalls.ts"
import * as Wire from "../wire.ts"
import * as Hold from "./hold.ts"

/** The longest lease in milliseconds: a program that ends without returning its messages hides them this long. */
const longestLease = 60_000

/** The longest lease in milliseconds that is not doubled. A redrive ends after this time without messages. */
const shortLease = 10_000

/**
 * Returns the lease of a browsed message: twice a consumer's, because up to 100,000 are extended in turn. A short one
 * is not doubled: messages of a lost response must return before a redrive ends.
 */
const leaseOf = (ofConsumers: number): number =>
  ofConsumers <= shortLease ? ofConsumers : Math.min(longestLease, 2 * ofConsumers)

/** Concurrent receives, and the maximum bytes that they should return. */
const parallel = 16
const pageBytes = 4 * 2 ** 20

/** Milliseconds that a receive waits for messages. With 0, SQS asks only some of its servers. */
const waitTime = 1000

/** Milliseconds for which closing waits for running receives, which end by then. */
const lastGrace = waitTime + 2000

export interface Dependencies {
  readonly client: Client
  readonly settings: Pick<Settings, "address" | "fifoRetry" | "visibilityTimeout">
  readonly queues: Queues
  readonly sources: Sources
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

const noDelayed = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "sqs",
    operation: "browse",
    queue,
    reason: "Unsupported",
    detail: "SQS does not show a message before it is due"
  })

const byAge = (a: Delivery.Delivery, b: Delivery.Delivery): number =>
  a.metadata.firstPublished - b.metadata.firstPublished

/**
 * Makes a function that receives up to a number of messages, and fails if a receive fails. A call while receives run
 * ends with them.
 */
const rounds = (
  poll: Receive.Receive<Message>,
  keep: (messages: ReadonlyArray<Message>, receivedAt: number) => void,
  now: () => number
) => {
  let current: Promise<BrokerError.BrokerError | undefined> | undefined
  /**
   * Receives that fit a page if all messages are as large as the largest of the last round: SQS does not report sizes.
   */
  let fitting = 1

  /** Keeps received messages, even if no call waits for them, and returns the size of the largest. */
  const receive = (count: number) => {
    const receivedAt = now()
    return new Promise<BrokerError.BrokerError | number>((resolve) =>
      poll(count, {
        failed: resolve,
        received: (messages) => {
          keep(messages, receivedAt)
          resolve(Math.max(...messages.map(({ Body = "" }) => Body.length)))
        }
      })
    )
  }

  const receiveAll = async (count: number) => {
    const receives = Math.min(fitting, Math.ceil(count / Limits.batch))
    const sizes = Array.from({ length: receives }, (_, at) => Math.min(Limits.batch, count - at * Limits.batch))
    const ends = await Promise.all(sizes.map(receive))
    const largest = Math.max(...ends.filter((end) => typeof end === "number"))
    fitting = Math.max(1, Math.min(parallel, Math.floor(pageBytes / largest / Limits.batch)))
    current = undefined
    return ends.find((end) => typeof end !== "number")
  }

  return (count: number) => Effect.promise(async () => (count > 0 ? (current ??= receiveAll(count)) : current))
}

const begun: Broker.Coverage = { isWhole: false, hidden: 0 }

/**
 * Opens a browser. `counts` counts the messages of its queue.
 *
 * Long, because pages, held messages and late receives share one state.
 */
export const browse = (
  env: Dependencies,
  { from, limit, queue }: Broker.BrowseOptions,
  counts: Effect.Effect<Broker.Counts, BrokerError.BrokerError>
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    if (from === "delayed") return yield* noDelayed(queue)
    const { client, fork, queues, sources } = env
    const { fifo } = yield* Effect.fromResult(Names.parse(queue))
    const { now } = yield* Timers.make
    const visibilityTimeout = leaseOf(env.settings.visibilityTimeout)
    let address = ""
    const url = () => address
    const hold = Hold.make(queue, ReceiptCalls.make({ client, queue, url, fork }), visibilityTimeout, now)
    const count = Effect.orElseSucceed(counts, (): Partial<Broker.Counts> => ({}))
    /** Messages that were ready at the start, and messages received since. */
    let [counted, received] = [Number.POSITIVE_INFINITY, 0]
    let unshown: Array<Delivery.Delivery> = []
    let [isOpen, isClosed] = [false, false]
    let browsed = begun

    const open = Effect.gen(function* () {
      const { isMissing = false, ready = Number.POSITIVE_INFINITY } = yield* count
      if (isMissing) return
      address = (yield* queues.see(queue)).url
      ;[isOpen, counted, received] = [true, ready, 0]
    })

    const keep = (messages: ReadonlyArray<Message>, receivedAt: number): void => {
      for (const message of messages) {
        const { MessageAttributes = {}, ReceiptHandle: handle = "", MessageId: messageId = handle } = message
        const leaseEnds = receivedAt + visibilityTimeout
        const receipt = { handle, messageId, receivedAt, leaseEnds, leaseError: undefined }
        if (!hold.add(receipt)) continue
        const { fifoRetry } = env.settings
        const context = { uncounted: 0, before: sources.before(message).count, now: env.now(), queue, fifoRetry }
        const delivery = arrived(message, context, fifo ? message.Attributes?.MessageGroupId : undefined, receipt)
        Originals.note(delivery.body, messageId)
        if (Wire.hasHeaders(MessageAttributes)) Originals.originals.set(delivery.body, MessageAttributes)
        unshown.push(delivery)
        received++
      }
      if (isClosed) fork(hold.release)
    }

    const settings = { waitTime, visibilityTimeout }
    const run = Effect.runPromiseWith(yield* Effect.context())
    const receive = rounds(Receive.make({ client, queue, fifo, url, settings, elapsed: now, sources, run }), keep, now)
    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        yield* Effect.timeoutOption(receive(0), Duration.millis(lastGrace))
        isClosed = true
        yield* hold.release
      })
    )
    let due = now()
    const pause = Effect.suspend(() => {
      // If an extension takes longer, the next one follows immediately.
      due = Math.max(due + visibilityTimeout / 3, now())
      return Effect.sleep(Duration.millis(due - now()))
    })
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(pause, hold.extend)))

    return {
      next: Effect.fnUntraced(function* (most) {
        browsed = begun
        const loss = hold.loss()
        if (loss !== undefined) {
          unshown = []
          isOpen = false
          yield* hold.release
          return yield* loss
        }
        if (!isOpen) yield* open
        const wanted = isOpen ? Math.min(most - unshown.length, limit - hold.size()) : 0
        const error = yield* receive(wanted)
        const page = unshown.splice(0, most)
        if (page.length === 0) {
          if (error !== undefined) return yield* error
          // If nothing is held, other consumers have the first messages of the groups.
          const ready = fifo && hold.size() > 0 ? (yield* count).ready : 0
          const hidden = ready === undefined ? undefined : Math.max(0, Math.min(ready, counted - received))
          browsed = { isWhole: wanted > 0 && received >= counted, hidden }
        }
        // A FIFO queue has an order within each group, which need not be that of ages.
        return (fifo ? page : page.toSorted(byAge)).map((delivery) => ({ delivery, due: undefined }))
      }),
      remove: hold.remove,
      identify: (delivery) => nameOf(receiptOf(delivery)),
      browsed: () => browsed
    }
  })
