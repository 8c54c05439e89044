/** Wakes the consumers of a queue when its messages may be due. */

/** `from` is when the first of the messages is due, in epoch milliseconds of the server; `undefined`: unknown. */
type Wake = (from: number | undefined) => void

export interface Wakeups {
  /** Adds a consumer. The result removes it. */
  readonly add: (queue: string, wake: Wake) => () => void
  /** Wakes the consumers of a queue in this process. */
  readonly wake: (queue: string, from: number | undefined) => void
  /** Wakes all. */
  readonly wakeAll: () => void
}

export const make = (): Wakeups => {
  const consumers = new Map<string, Set<Wake>>()
  const wake: Wakeups["wake"] = (queue, from) => {
    for (const each of consumers.get(queue) ?? []) each(from)
  }
  return {
    add: (queue, own) => {
      const all = consumers.get(queue) ?? new Set()
      consumers.set(queue, all.add(own))
      return () => {
        all.delete(own)
        if (all.size === 0) consumers.delete(queue)
      }
    },
    wake,
    wakeAll: () => {
      for (const queue of consumers.keys()) wake(queue, undefined)
    }
  }
}
