/**
 * Messages of one queue that may come again, and what this process remembers of them, also when its subscription has ended.
 * SQS and other processes do not know it.
 */
import { BoundedMap } from "@requeue/core/port"

/** Messages whose copy is stored, and whose delete may be lost, so that SQS delivers them once more. */
const settledLimit = 20_000

/** Messages whose uncounted receives are remembered. Receives that are forgotten count as attempts. */
const uncountedLimit = 10_000

/** The memory, by the id that SQS gives a message. */
export interface Remembered {
  /** Messages that are settled for good, and may come again because their delete was lost. */
  readonly settled: Pick<BoundedMap.BoundedMap<true>, "has" | "set">
  /** Receives of a message that reached no handler. SQS counts them, and its attempts must not. */
  readonly uncounted: (messageId: string) => number
  /** A receive has reached no handler. */
  readonly addUncounted: (messageId: string) => void
  /** The message has left its queue. */
  readonly forgetUncounted: (messageId: string) => void
}

/** Forgets messages without an id: all of them would be taken for one, and deleted with it. */
const named = <A>(map: BoundedMap.BoundedMap<A>): BoundedMap.BoundedMap<A> => ({
  ...map,
  set: (messageId, value) => {
    if (messageId !== "") map.set(messageId, value)
  }
})

/** Remembers nothing yet. `limit` is the number of settled messages that are kept; the oldest are forgotten. */
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

/** Makes the function that answers the memory of a queue. */
export const byQueue = (): ((queue: string) => Remembered) => {
  const memories = new Map<string, Remembered>()
  return (queue) => {
    const memory = memories.get(queue) ?? make()
    memories.set(queue, memory)
    return memory
  }
}
