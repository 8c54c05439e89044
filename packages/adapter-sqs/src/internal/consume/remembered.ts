/**
 * Messages of one queue that may be redelivered, as this process remembers them, also after its subscription has ended.
 * SQS and other processes do not know them.
 */
import { BoundedMap } from "@requeue/core/port"

/** Number of remembered messages whose copy is stored: if their delete is lost, SQS redelivers them. */
const settledLimit = 20_000

/** Number of messages whose uncounted receives are remembered. Forgotten receives count as attempts. */
const uncountedLimit = 10_000

/** The memory, keyed by SQS's message id. */
export interface Remembered {
  /** Settled messages, which are redelivered if their delete was lost. */
  readonly settled: Pick<BoundedMap.BoundedMap<true>, "has" | "set">
  /** Receives of a message that reached no handler: SQS counts them, but attempts must not. */
  readonly uncounted: (messageId: string) => number
  /** Records a receive that reached no handler. */
  readonly addUncounted: (messageId: string) => void
  /** Forgets a message that has left its queue. */
  readonly forgetUncounted: (messageId: string) => void
}

/** Ignores messages without an id: otherwise all of them would count as one, and be deleted with it. */
const named = <A>(map: BoundedMap.BoundedMap<A>): BoundedMap.BoundedMap<A> => ({
  ...map,
  set: (messageId, value) => {
    if (messageId !== "") map.set(messageId, value)
  }
})

/** Makes an empty memory. `limit` is the number of settled messages that are kept; the oldest are forgotten. */
export const make = (limit = settledLimit): Remembered => {
  const receives = named(BoundedMap.make<number>(uncountedLimit))
  const uncounted = (messageId: string): number => receives.get(messageId) ?? 0
  return {
    settled: named(BoundedMap.make<true>(limit)),
    uncounted,
    addUncounted: (messageId) => receives.set(messageId, uncounted(messageId) + 1),
    forgetUncounted: receives.delete
  }
}

/** Makes a function that returns the memory of a queue. */
export const byQueue = (): ((queue: string) => Remembered) => {
  const memories = new Map<string, Remembered>()
  return (queue) => {
    const memory = memories.get(queue) ?? make()
    memories.set(queue, memory)
    return memory
  }
}
