/** The queues and their messages, and how messages move between the places of a queue. Knows no settlements. */
import type { Bag, Broker, Message, Metadata, Timers } from "@requeue/core/port"
import * as WaitQueue from "./publish/waitQueue.ts"
import * as ReadyQueue from "./readyQueue.ts"

/** A message in a queue. */
export interface StoredMessage extends ReadyQueue.Member<StoredMessage> {
  readonly body: Uint8Array
  readonly headers: Message.Headers
  metadata: Metadata.Metadata
  /** Deliveries of this copy so far; those of earlier copies are in the metadata. */
  deliveries: number
  /** When its delay ends, in monotonic milliseconds; only of a delayed message. */
  due: number
  timer: Timers.Timer | undefined
}

/**
 * The receipt of a delivery: a message that was delivered and is not settled. Each delivery has its own, so that a stale
 * receipt settles nothing.
 */
export class Receipt implements Bag.Member {
  readonly consumer: Consumer
  readonly message: StoredMessage
  /** Receipts are numbered in the order of delivery. */
  readonly number: number
  /** The latest end of its lease, in monotonic milliseconds. */
  until: number | undefined = undefined
  expiry: Timers.Timer | undefined = undefined
  place = -1
  constructor(consumer: Consumer, message: StoredMessage, number: number) {
    this.consumer = consumer
    this.message = message
    this.number = number
  }
}

/** An open subscription, or a browser. */
export interface Consumer {
  readonly options: Pick<Broker.SubscribeOptions, "onDelivery" | "onReconnect">
  readonly queue: Queue
  /** Receipts of its deliveries in flight. */
  readonly receipts: Bag.Bag<Receipt>
  /** How many deliveries it may have in flight. */
  credit: number
  /** Whether it is among the ready consumers of its queue. */
  isReady: boolean
}

/** A publish that waits for room. */
export interface BlockedPublish {
  readonly admit: () => void
  readonly refuse: () => void
}

/** A queue, and all who use it. */
export interface Queue {
  readonly name: string
  readonly ready: ReadyQueue.ReadyQueue<StoredMessage>
  readonly delayed: Set<StoredMessage>
  /** The number of messages in the queue: ready, delayed and in flight. */
  held: number
  readonly blocked: WaitQueue.WaitQueue<BlockedPublish>
  readonly consumers: Set<Consumer>
  /** The consumers with credit left, next one first. */
  readonly readyConsumers: Array<Consumer>
  /** Whether deliveries are being made, or pause to let others run. */
  turn: "idle" | "delivering" | "resting"
}

/**
 * Makes what few queues need when they need it first. A process may have thousands that it only sends to, in turn: what
 * they take must stay in the processor's caches.
 */
class LeanQueue implements Queue {
  readonly name: string
  readonly ready: Queue["ready"] = ReadyQueue.make()
  readonly readyConsumers: Queue["readyConsumers"] = []
  held = 0
  turn: Queue["turn"] = "idle"
  #delayed: Queue["delayed"] | undefined = undefined
  #blocked: Queue["blocked"] | undefined = undefined
  #consumers: Queue["consumers"] | undefined = undefined

  constructor(name: string) {
    this.name = name
  }

  get delayed(): Queue["delayed"] {
    return (this.#delayed ??= new Set())
  }

  get blocked(): Queue["blocked"] {
    return (this.#blocked ??= WaitQueue.make())
  }

  get consumers(): Queue["consumers"] {
    return (this.#consumers ??= new Set())
  }
}

/** All queues of a broker. */
export interface Queues {
  readonly all: ReadonlyMap<string, Queue>
  /** The queue of this name, made on first use. */
  readonly get: (name: string) => Queue
  /** Puts a message at the tail, now or when the delay is over. The caller counts it in `held`. */
  readonly enqueue: (queue: Queue, message: StoredMessage, delay: number) => void
  /** The same for a message that came before its time and is given back until then: it does not come early again. */
  readonly postpone: (queue: Queue, message: StoredMessage, delay: number) => void
  /** Ends the delays of all messages, in the order in which they were due. */
  readonly forgetDelays: (queue: Queue) => void
  /** Removes one of the delayed messages. */
  readonly removeDelayed: (queue: Queue, message: StoredMessage) => void
  /** Removes all messages that are ready or delayed, and answers their number. */
  readonly purge: (queue: Queue) => number
}

/** No queues yet. Times are in milliseconds. */
export const make = (env: {
  readonly timers: Timers.Timers
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** By how much a delayed message comes before its time. */
  readonly earlyBy: number
  /** Called when delayed messages have joined the ready ones. */
  readonly onReady: (queue: Queue) => void
}): Queues => {
  const { earlyBy, now, onReady, timers } = env
  const all = new Map<string, Queue>()

  // One `Timers` entry per delayed message costs the same heap entry that a heap of our own would, and cancels in O(1).
  // A delay that was kept in full needs no second look at the wall clock, which may have been set back meanwhile.
  const delay = (queue: Queue, message: StoredMessage, millis: number, early: number, keepsAll: boolean): void => {
    message.due = timers.now() + millis
    queue.delayed.add(message)
    message.timer = timers.after(Math.max(0, millis - early), () => {
      if (keepsAll) message.metadata = { ...message.metadata, notBefore: 0 }
      queue.delayed.delete(message)
      queue.ready.append(message)
      onReady(queue)
    })
  }

  const takeDelayed = (queue: Queue): ReadonlyArray<StoredMessage> => {
    const taken = [...queue.delayed]
    queue.delayed.clear()
    for (const { timer } of taken) timers.cancel(timer)
    return taken
  }

  return {
    all,
    get: (name) => {
      const known = all.get(name)
      if (known !== undefined) return known
      const queue = new LeanQueue(name)
      all.set(name, queue)
      return queue
    },
    enqueue: (queue, message, millis) => {
      if (millis > 0) delay(queue, message, millis, earlyBy, earlyBy === 0)
      else queue.ready.append(message)
    },
    // A release may be shorter than what is left.
    postpone: (queue, message, millis) =>
      delay(queue, message, millis, 0, message.metadata.notBefore <= now() + millis),
    forgetDelays: (queue) => {
      for (const message of takeDelayed(queue).toSorted((a, b) => a.due - b.due)) queue.ready.append(message)
      onReady(queue)
    },
    removeDelayed: (queue, message) => {
      timers.cancel(message.timer)
      queue.delayed.delete(message)
      queue.held--
    },
    purge: (queue) => {
      const removed = takeDelayed(queue).length + queue.ready.size()
      queue.ready.clear()
      queue.held -= removed
      return removed
    }
  }
}
