/**
 * The consumers of each queue that wait for messages.
 *
 * When to use: in an adapter whose consumers fetch messages, to wake them.
 */

/** The waiting consumers. `C` is a consumer, or what wakes one. */
export interface Wakeups<C> {
  /** Adds a consumer. The result removes it. */
  readonly add: (queue: string, consumer: C) => () => void
  /** Returns the consumers of a queue; `undefined`: of all queues. */
  readonly of: (queue?: string) => Iterable<C>
}

/** Makes an empty set of consumers. */
export const make = <C>(): Wakeups<C> => {
  const queues = new Map<string, Set<C>>()
  return {
    add: (queue, consumer) => {
      const all = queues.get(queue) ?? new Set()
      queues.set(queue, all.add(consumer))
      return () => {
        all.delete(consumer)
        if (all.size === 0) queues.delete(queue)
      }
    },
    of: (queue) => (queue === undefined ? [...queues.values()].flatMap((all) => [...all]) : (queues.get(queue) ?? []))
  }
}
