/** The queues and their messages, and how messages move between ready, delayed and in flight. */
import type { Bag, Broker, Lane, Message, Metadata, Timers } from "@requeue/core/port"
import * as Lanes from "./lanes.ts"
import * as WaitQueue from "./publish/waitQueue.ts"
import { Begun } from "./consume/limits.ts"
import * as ReadyQueue from "./readyQueue.ts"
import * as Shares from "./shares.ts"

/** A message in a queue. */
export interface StoredMessage extends Shares.Member<StoredMessage> {
  readonly body: Uint8Array
  readonly headers: Message.Headers
  metadata: Metadata.Metadata
  /** Deliveries of this copy so far; the metadata has those of earlier copies. */
  deliveries: number
  /** When its delay ends, in monotonic milliseconds; only for a delayed message, and one behind others. */
  due: number
  timer: Timers.Timer | undefined
  /** Its place in the order of its key. */
  place: Lane.Place | undefined
}

/** The receipt of an unsettled delivery. Each delivery has a new one, so a stale receipt settles nothing. */
export class Receipt implements Bag.Member {
  readonly consumer: Consumer
  readonly message: StoredMessage
  /** In the order of delivery. */
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
  readonly options: Pick<Broker.SubscribeOptions, "onDelivery" | "onReconnect" | "shareLimits">
  readonly queue: Queue
  /** Receipts of its deliveries in flight. */
  readonly receipts: Bag.Bag<Receipt>
  /** How many deliveries it may have in flight. */
  credit: number
  /** Whether it is in `readyConsumers` of its queue. */
  isReady: boolean
}

/** A publish that waits for room in its queue. */
export interface BlockedPublish {
  readonly admit: () => void
  readonly refuse: () => void
}

/** A queue with its messages, consumers and blocked publishes. */
export interface Queue {
  readonly name: string
  ready: Shares.Shares<StoredMessage>
  readonly delayed: Set<StoredMessage>
  /** The messages that wait for an earlier one of their key. */
  readonly behind: Set<StoredMessage>
  /** The deliveries to consumers with limits of shares. */
  readonly begun: Begun
  /** The number of messages in the queue: ready, delayed, in flight and behind others. */
  held: number
  readonly blocked: WaitQueue.WaitQueue<BlockedPublish>
  readonly consumers: Set<Consumer>
  /** The consumers with unused credit, next one first. */
  readonly readyConsumers: Array<Consumer>
  /** Whether it has a place among the queues that deliver next. */
  isDue: boolean
}

/** Creates rarely needed parts lazily: a process may send to thousands of queues, which should fit in the CPU's caches. */
class LeanQueue implements Queue {
  readonly name: string
  ready: Queue["ready"] = ReadyQueue.make()
  readonly readyConsumers: Queue["readyConsumers"] = []
  held = 0
  isDue = false
  #delayed: Queue["delayed"] | undefined = undefined
  #behind: Queue["behind"] | undefined = undefined
  #begun: Queue["begun"] | undefined = undefined
  #blocked: Queue["blocked"] | undefined = undefined
  #consumers: Queue["consumers"] | undefined = undefined

  constructor(name: string) {
    this.name = name
  }

  get delayed(): Queue["delayed"] {
    return (this.#delayed ??= new Set())
  }

  get behind(): Queue["behind"] {
    return (this.#behind ??= new Set())
  }

  get begun(): Queue["begun"] {
    return (this.#begun ??= new Begun())
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
  /** Returns the queue of this name, created on first use. */
  readonly get: (name: string) => Queue
  /** Adds a message, or makes it wait for an earlier one of its key. */
  readonly add: (queue: Queue, message: StoredMessage, delay: number) => void
  /** The message has left its queue for good: the next one of its key may be delivered. */
  readonly makeWay: (message: StoredMessage) => void
  /** Returns how many messages of its key a message holds up; `undefined` if it is in no lane. */
  readonly blocks: Lanes.Lanes<StoredMessage, Queue>["blocks"]
  /** Appends a message, now or after the delay. The caller counts it in `held`. */
  readonly enqueue: (queue: Queue, message: StoredMessage, delay: number) => void
  /** Does the same for a message that was released because it arrived early: it does not arrive early again. */
  readonly postpone: (queue: Queue, message: StoredMessage, delay: number) => void
  /** Ends the delays of all messages, in the order in which they were due. */
  readonly forgetDelays: (queue: Queue) => void
  /** Removes one delayed message. */
  readonly removeDelayed: (queue: Queue, message: StoredMessage) => void
  /** Removes all ready and delayed messages, and returns their number. */
  readonly purge: (queue: Queue) => number
}

/**
 * Times are in milliseconds.
 *
 * Long, because its functions share the delays and lanes.
 */
export const make = (env: {
  readonly timers: Timers.Timers
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** How early a delayed message arrives. */
  readonly earlyBy: number
  /** Called when delayed messages have become ready. */
  readonly onReady: (queue: Queue) => void
}): Queues => {
  const { earlyBy, now, onReady, timers } = env
  const all = new Map<string, Queue>()

  // A timer per delayed message costs one heap entry, as a separate heap would, and cancels in O(1).
  // After a whole delay, `notBefore` is cleared: the wall clock may have been set back, and would then delay it again.
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

  const enqueue: Queues["enqueue"] = (queue, message, millis) => {
    if (millis > 0) delay(queue, message, millis, earlyBy, earlyBy === 0)
    else queue.ready.append(message)
  }

  const lanes = Lanes.make<StoredMessage, Queue>((queue, message) => {
    enqueue(queue, message, Math.max(0, message.due - timers.now()))
    onReady(queue)
  })

  const takeDelayed = (queue: Queue): ReadonlyArray<StoredMessage> => {
    const taken = [...queue.delayed]
    queue.delayed.clear()
    for (const { timer } of taken) timers.cancel(timer)
    return taken
  }

  return {
    all,
    get: (name) => {
      const existing = all.get(name)
      if (existing !== undefined) return existing
      const queue = new LeanQueue(name)
      all.set(name, queue)
      return queue
    },
    add: (queue, message, millis) => {
      queue.held++
      if (message.fairBy !== undefined) queue.ready = Shares.over(queue.ready)
      if (message.place === undefined || lanes.enter(queue, message)) enqueue(queue, message, millis)
      else message.due = timers.now() + millis
    },
    makeWay: lanes.leave,
    blocks: lanes.blocks,
    enqueue,
    // A release may be shorter than the rest of the delay.
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
      lanes.leave(message)
    },
    purge: (queue) => {
      const taken = [...takeDelayed(queue), ...queue.ready]
      const removed = taken.length + queue.behind.size
      queue.behind.clear()
      queue.ready.clear()
      queue.held -= removed
      for (const message of taken) lanes.leave(message)
      return removed
    }
  }
}
