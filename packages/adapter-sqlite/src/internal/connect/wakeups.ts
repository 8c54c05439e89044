/** Wakes the consumers of a queue when its messages may be due. */

export interface Wakeups {
  /** Adds a consumer. The result removes it. */
  readonly add: (queue: string, wake: () => void) => () => void
  /** Wakes the consumers of one queue, or of all. */
  readonly wake: (queue?: string) => void
}

export const make = (): Wakeups => {
  const consumers = new Map<string, Set<() => void>>()
  const wakeQueue = (queue: string): void => {
    for (const wake of consumers.get(queue) ?? []) wake()
  }
  return {
    add: (queue, wake) => {
      const all = consumers.get(queue) ?? new Set()
      consumers.set(queue, all.add(wake))
      return () => {
        all.delete(wake)
        if (all.size === 0) consumers.delete(queue)
      }
    },
    wake: (queue) => {
      for (const name of queue === undefined ? consumers.keys() : [queue]) wakeQueue(name)
    }
  }
}
