/**
 * How many batches begin before the event loop gets a turn. What a burst settles is sent when all of it is decided, and a retry may
 * cost a hundred times what an ack costs: a burst of which much fails is short, lest each of its retries be late by all others.
 */
export interface YieldBudget {
  /** Must be called when a batch begins; whether the event loop gets a turn after it. */
  readonly begun: () => boolean
  /** Must be called when a message ends with anything but an ack. */
  readonly failed: () => void
}

/** Batches of a burst of which nothing fails. */
const most = 512

/** Messages that may fail in one burst. */
const few = 24

/** Nothing has failed, at first. */
export const make = (): YieldBudget => {
  /** Batches of this burst. */
  let length = 0
  /** Batches, and messages that have failed, by which the next ones are judged: those of each burst before count half. */
  let begun = 0
  let failed = 0

  const limit = (): number => (failed === 0 ? most : Math.min(most, Math.ceil((few * Math.max(1, begun)) / failed)))

  return {
    begun: () => {
      begun++
      if (++length < limit()) return false
      length = 0
      begun /= 2
      failed /= 2
      return true
    },
    failed: () => void failed++
  }
}
