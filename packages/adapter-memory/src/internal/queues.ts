/** All that the broker remembers, and how messages move between the places of a queue. Knows no settlements. */
import type { Bag, Broker, Message, Metadata, Timers } from "@requeue/core/adapter-kit"
import * as Line from "./readyQueue.ts"
import * as Waiters from "./publish/waitQueue.ts"

export interface Stored extends Line.Member<Stored> {
  readonly body: Uint8Array
  readonly headers: Message.Headers
  metadata: Metadata.Metadata
  /** Deliveries of this copy so far; those of its forerunners stand in the metadata. */
  deliveries: number
  /** Monotonic milliseconds; only of a delayed message. */
  due: number
  timer: Timers.Timer | undefined
}

/**
 * A message that was handed out and is not settled. It is its delivery's receipt, and a new one each time, so that a
 * stale receipt settles nothing.
 */
export class Loan implements Bag.Member {
  readonly consumer: Consumer
  readonly stored: Stored
  /** Loans are numbered as they are handed out. */
  readonly number: number
  /** The latest end of its lease, in monotonic milliseconds. */
  until: number | undefined = undefined
  expiry: Timers.Timer | undefined = undefined
  place = -1
  constructor(consumer: Consumer, stored: Stored, number: number) {
    this.consumer = consumer
    this.stored = stored
    this.number = number
  }
}

export interface Consumer {
  readonly options: Broker.SubscribeOptions
  readonly queue: Queue
  readonly loans: Bag.Bag<Loan>
  credit: number
  /** Whether it is among the hungry. */
  isHungry: boolean
}

/** A publish that waits for room. */
export interface Waiter {
  readonly store: () => void
  readonly refuse: () => void
}

export interface Queue {
  readonly name: string
  readonly ready: Line.Line<Stored>
  readonly delayed: Set<Stored>
  /** Messages in the queue: ready, delayed and in flight. */
  held: number
  readonly waiters: Waiters.Waiters<Waiter>
  readonly consumers: Set<Consumer>
  /** The consumers with credit left, next one first. */
  readonly hungry: Array<Consumer>
  /** Whether deliveries are being made, or pause to let others run. */
  turn: "idle" | "delivering" | "resting"
}

export interface Store {
  readonly queues: ReadonlyMap<string, Queue>
  /** The queue of this name, made on first use. */
  readonly queue: (name: string) => Queue
  /** Puts a message at the tail: now, or when the delay is over. `held` is the caller's. */
  readonly enqueue: (queue: Queue, stored: Stored, delay: number) => void
  /** The same for a message that is given back until it is due: that it came early once is enough. */
  readonly postpone: (queue: Queue, stored: Stored, delay: number) => void
  /** Ends the delays of all these messages, in the order in which they were due. */
  readonly forgetDelays: (queue: Queue) => void
  /** Removes what is ready or delayed and answers how many. */
  readonly purge: (queue: Queue) => number
}

/** `wallClock` is in milliseconds since the epoch; `onReady` is told when delayed messages have joined the ready ones. */
export const make = (
  timers: Timers.Timers,
  wallClock: () => number,
  earlyBy: number,
  onReady: (queue: Queue) => void
): Store => {
  const queues = new Map<string, Queue>()

  // One `Timers` entry per delayed message costs the same heap entry that a heap of our own would, and cancels in O(1).
  const delay = (queue: Queue, stored: Stored, millis: number, early: number): void => {
    stored.due = timers.now() + millis
    queue.delayed.add(stored)
    // A delay that was kept in full needs no second look at the wall clock, which may have been set back meanwhile.
    const keepsAll = early === 0 && stored.metadata.notBefore <= wallClock() + millis
    stored.timer = timers.after(Math.max(0, millis - early), () => {
      if (keepsAll) stored.metadata = { ...stored.metadata, notBefore: 0 }
      queue.delayed.delete(stored)
      queue.ready.append(stored)
      onReady(queue)
    })
  }

  const takeDelayed = (queue: Queue): ReadonlyArray<Stored> => {
    const taken = [...queue.delayed]
    queue.delayed.clear()
    for (const { timer } of taken) timers.cancel(timer)
    return taken
  }

  return {
    queues,
    queue: (name) => {
      const known = queues.get(name)
      if (known !== undefined) return known
      const queue: Queue = {
        name,
        ready: Line.make(),
        delayed: new Set(),
        held: 0,
        waiters: Waiters.make(),
        consumers: new Set(),
        hungry: [],
        turn: "idle"
      }
      queues.set(name, queue)
      return queue
    },
    enqueue: (queue, stored, millis) => {
      if (millis > 0) delay(queue, stored, millis, earlyBy)
      else queue.ready.append(stored)
    },
    postpone: (queue, stored, millis) => delay(queue, stored, millis, 0),
    forgetDelays: (queue) => {
      for (const stored of takeDelayed(queue).toSorted((a, b) => a.due - b.due)) queue.ready.append(stored)
      onReady(queue)
    },
    purge: (queue) => {
      const removed = takeDelayed(queue).length + queue.ready.size()
      queue.ready.clear()
      queue.held -= removed
      return removed
    }
  }
}
