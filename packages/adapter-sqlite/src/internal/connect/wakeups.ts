/** Wakes the consumers of a queue when its messages may be due. */

/** A consumer that waits for messages. */
interface Sleeper {
  readonly wake: () => void
  /** Whether it could lease more messages. */
  readonly hasCredit: () => boolean
}

export interface Wakeups {
  /** Adds a consumer. The result removes it. */
  readonly add: (queue: string, consumer: Sleeper) => () => void
  /** Wakes the consumers of one queue, or of all. */
  readonly wake: (queue?: string) => void
  /** Whether any consumer could lease more messages. */
  readonly isAwaited: () => boolean
}

export const make = (): Wakeups => {
  const consumers = new Map<string, Set<Sleeper>>()
  const wakeQueue = (queue: string): void => {
    for (const { wake } of consumers.get(queue) ?? []) wake()
  }
  return {
    add: (queue, consumer) => {
      const all = consumers.get(queue) ?? new Set()
      consumers.set(queue, all.add(consumer))
      return () => {
        all.delete(consumer)
        if (all.size === 0) consumers.delete(queue)
      }
    },
    wake: (queue) => {
      for (const name of queue === undefined ? consumers.keys() : [queue]) wakeQueue(name)
    },
    isAwaited: () => {
      for (const all of consumers.values()) for (const { hasCredit } of all) if (hasCredit()) return true
      return false
    }
  }
}
