/**
 * Makes FIFO queues of fauxqs behave as those of AWS: a receive has all messages of a group, in their order, that are not behind
 * one in flight. fauxqs delivers one message of a group, and none until that is gone; no proxy can change that.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagegroupid-property.html
 */

interface Message {
  readonly messageGroupId?: string
}

interface Queue {
  readonly fifoMessages: Map<string, Array<Message>>
  readonly fifoLockedGroups: Map<string, number>
  readonly inflightMessages: ReadonlyMap<string, { readonly message: Message }>
}

interface Methods {
  enqueue: (this: Queue, message: Message) => void
  processTimers: (this: Queue) => void
  hasAvailableFifoMessages: (this: Queue) => boolean
  dequeueFifo: (this: Queue, max: number, ...others: ReadonlyArray<unknown>) => ReadonlyArray<object>
}

/** Changes the class of queues. */
export const change = (queue: Methods): void => {
  const { dequeueFifo, enqueue, processTimers } = queue
  const places = new WeakMap<Message, number>()
  let next = 0
  const placeOf = (message: Message): number => places.get(message) ?? 0

  /** For each group, the index of its first message in flight. */
  const barriers = ({ inflightMessages }: Queue): ReadonlyMap<string, number> => {
    const found = new Map<string, number>()
    for (const { message } of inflightMessages.values()) {
      const { messageGroupId = "" } = message
      found.set(messageGroupId, Math.min(placeOf(message), found.get(messageGroupId) ?? Infinity))
    }
    return found
  }

  /** Locks the groups whose first message is behind its barrier, and no others; returns whether any is free. */
  const lock = ({ fifoLockedGroups, fifoMessages }: Queue, barrier: ReadonlyMap<string, number>): boolean => {
    fifoLockedGroups.clear()
    for (const [group, messages] of fifoMessages) {
      // Returned messages may be in any order.
      const sorted = messages.toSorted((a, b) => placeOf(a) - placeOf(b))
      fifoMessages.set(group, sorted)
      const [first] = sorted
      if (first !== undefined && placeOf(first) > (barrier.get(group) ?? Infinity)) fifoLockedGroups.set(group, 1)
    }
    return fifoLockedGroups.size < fifoMessages.size
  }

  queue.enqueue = function (message) {
    places.set(message, next++)
    enqueue.call(this, message)
  }
  queue.hasAvailableFifoMessages = function () {
    return lock(this, barriers(this))
  }
  queue.dequeueFifo = function (max, ...others) {
    processTimers.call(this)
    const barrier = barriers(this)
    const found: Array<object> = []
    // Messages that become visible from now on are for the next receive.
    const still: Queue = Object.create(this, { processTimers: { value: () => {} } })
    while (found.length < max && lock(this, barrier)) {
      const one = dequeueFifo.call(still, 1, ...others)
      if (one.length === 0) break
      found.push(...one)
    }
    return found
  }
}
