/**
 * Receives that reached no handler, by message: SQS counts them, and this process knows better. What it forgets, and
 * what other processes did, stays counted.
 */

/** Messages that are remembered; the oldest are forgotten first. */
const limit = 10_000

export interface Tally {
  readonly add: (messageId: string) => void
  readonly of: (messageId: string) => number
  readonly delete: (messageId: string) => void
}

export const make = (): Tally => {
  const counts = new Map<string, number>()
  const of = (messageId: string): number => counts.get(messageId) ?? 0
  return {
    of,
    add: (messageId) => {
      const count = of(messageId) + 1
      counts.delete(messageId)
      counts.set(messageId, count)
      if (counts.size > limit) counts.delete(counts.keys().next().value!)
    },
    delete: (messageId) => void counts.delete(messageId)
  }
}
