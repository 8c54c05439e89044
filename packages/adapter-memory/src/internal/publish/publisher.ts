/** Stores published messages: checks them against the capabilities, and makes publishers wait for room. */
import { BrokerError, type Capabilities, Metadata, type Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Delays } from "../delays.ts"
import type { BlockedPublish, Queue, Queues, StoredMessage } from "../queues.ts"
import * as Transaction from "../transaction.ts"

/** Publishes to all queues. */
export interface Publisher {
  /** Stores the messages in order; each waits for room in its queue. */
  readonly publish: (messages: ReadonlyArray<Outgoing.Outgoing>) => Effect.Effect<void, BrokerError.BrokerError>
  /** Stores the messages without waiting when the transaction is committed. */
  readonly publishWithin: (
    transaction: unknown,
    messages: ReadonlyArray<Outgoing.Outgoing>
  ) => Effect.Effect<void, BrokerError.BrokerError>
  /** Stores a copy without waiting, because its original is removed next. */
  readonly copy: (message: Outgoing.Outgoing) => void
  /** Stores blocked publishes while there is room; `undefined` without a limit. */
  readonly admit: ((queue: Queue) => void) | undefined
  /** Fails all blocked and all later publishes. */
  readonly close: () => void
}

interface Dependencies {
  readonly queues: Queues
  /** Delivers the ready messages of a queue. */
  readonly pump: (queue: Queue) => void
  readonly delays: Delays
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly capabilities: Pick<Capabilities.Capabilities, "maxBodySize">
  readonly maxMessages: number
  /** Whether the confirmation of this call is lost. */
  readonly loseConfirmation: () => boolean
}

type Published = Effect.Effect<void, BrokerError.BrokerError>

const failure = (
  queue: string | undefined,
  reason: BrokerError.Reason,
  detail: string,
  remedy?: string
): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "memory", operation: "publish", queue, reason, detail, remedy })

const closed = (queue: string): BrokerError.BrokerError => failure(queue, "ConnectionFailed", "the broker was closed")

/** Returns the error of a batch whose first `stored` messages were stored. */
const partly = (error: BrokerError.BrokerError, count: number, stored: number): BrokerError.BrokerError =>
  BrokerError.ofBatch(Array.from({ length: count }, (_, index) => (index < stored ? undefined : error))) ?? error

/** Returns a message to store. `now` is in milliseconds since the epoch. */
const stored = (message: Outgoing.Outgoing, now: number): StoredMessage => new Stored(message, now)

/** A class: see `ShortList`. */
class Stored implements StoredMessage {
  readonly body: Uint8Array
  readonly headers: StoredMessage["headers"]
  metadata: Metadata.Metadata
  deliveries = 0
  due = 0
  timer: StoredMessage["timer"] = undefined
  place: StoredMessage["place"]
  readonly fairBy: string | undefined
  position = 0
  next: StoredMessage | undefined = undefined

  constructor({ body, fairBy, headers, metadata, place }: Outgoing.Outgoing, now: number) {
    this.body = body
    this.headers = headers
    this.metadata = Metadata.setBack(metadata, now)
    this.place = place
    this.fairBy = fairBy
  }
}

// Long, because its functions share the blocked publishes.
export const make = (dependencies: Dependencies): Publisher => {
  const { capabilities, delays, loseConfirmation, maxMessages, now, pump, queues } = dependencies
  /** Without a limit no publish waits. Checking anyway would cost a cache miss if there are many queues. */
  const isBounded = maxMessages < Number.POSITIVE_INFINITY
  let isOpen = true

  const refusal = ({ body, create, delay, queue }: Outgoing.Outgoing): BrokerError.BrokerError | undefined => {
    const { maxBodySize } = capabilities
    if (!isOpen) return closed(queue)
    if (create === false && !queues.all.has(queue)) return failure(queue, "QueueMissing", "there is no such queue")
    if (body.length <= maxBodySize) return delays.refusal("publish", queue, delay)
    const detail = `the body has ${body.length} bytes, the limit is ${maxBodySize}`
    return failure(queue, "BodyTooLarge", detail, "Send a smaller body or raise maxBodySize")
  }

  const add = (queue: Queue, outgoing: Outgoing.Outgoing): void => {
    queues.add(queue, stored(outgoing, now()), delays.round(outgoing.delay))
    pump(queue)
  }

  const wait = (queue: Queue, message: Outgoing.Outgoing): Published =>
    Effect.callback((resume) => {
      const blocked: BlockedPublish = {
        admit: () => {
          add(queue, message)
          resume(Effect.void)
        },
        refuse: () => resume(Effect.fail(closed(queue.name)))
      }
      queue.blocked.add(blocked)
      return Effect.sync(() => queue.blocked.remove(blocked))
    })

  /** Stores the messages from `start` on, and waits where there is no room. */
  const storeFrom = (messages: ReadonlyArray<Outgoing.Outgoing>, start: number): Published => {
    for (let i = start; i < messages.length; i++) {
      const message = messages[i]!
      const queue = queues.get(message.queue)
      // A publish never overtakes blocked ones.
      if (isBounded && (queue.held >= maxMessages || queue.blocked.size() > 0)) {
        const withEntries = (error: BrokerError.BrokerError) => partly(error, messages.length, i)
        return Effect.flatMap(Effect.mapError(wait(queue, message), withEntries), () => storeFrom(messages, i + 1))
      }
      add(queue, message)
    }
    return Effect.void
  }

  const confirm = (messages: ReadonlyArray<Outgoing.Outgoing>): Published =>
    loseConfirmation()
      ? Effect.fail(failure(messages[0]?.queue, "Timeout", "the confirmation was lost (duplicateOnLostConfirmation)"))
      : Effect.void

  const refusalOf = (messages: ReadonlyArray<Outgoing.Outgoing>): BrokerError.BrokerError | undefined => {
    for (const message of messages) {
      const error = refusal(message)
      if (error !== undefined) return error
    }
    return undefined
  }

  const copy = (message: Outgoing.Outgoing): void => add(queues.get(message.queue), message)

  return {
    publish: (messages) =>
      Effect.suspend(() => {
        const error = refusalOf(messages)
        if (error !== undefined) return Effect.fail(error)
        return Effect.flatMap(storeFrom(messages, 0), () => confirm(messages))
      }),
    publishWithin: (transaction, messages) =>
      Effect.suspend(() => {
        const changes = Transaction.open(transaction)
        if (!(changes instanceof Transaction.Changes)) return Effect.fail(changes)
        const error = refusalOf(messages)
        if (error !== undefined) return Effect.fail(error)
        changes.add({ refusal: () => refusalOf(messages), make: () => messages.forEach(copy) })
        return Effect.void
      }),
    copy,
    admit: isBounded
      ? (queue) => {
          while (queue.held < maxMessages) {
            const blocked = queue.blocked.take()
            if (blocked === undefined) return
            blocked.admit()
          }
        }
      : undefined,
    close: () => {
      isOpen = false
      for (const { blocked } of queues.all.values()) {
        for (let publish = blocked.take(); publish !== undefined; publish = blocked.take()) publish.refuse()
      }
    }
  }
}
