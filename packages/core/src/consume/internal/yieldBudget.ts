/**
 * How many batches begin before the consumer yields to the event loop (a burst). The settlements of a burst are sent at its
 * end, and a retry may cost a hundred times as much as an ack. So a burst with many failures is short: otherwise its retries
 * would delay each other.
 */
export interface YieldBudget {
  /** Must be called when a batch begins. Returns whether to yield after it. */
  readonly begun: () => boolean
  /** Must be called when a message ends with anything but an ack. */
  readonly failed: () => void
}

/** The most batches of a burst. */
const maxBatches = 512

/** The most failed messages of a burst. */
const maxFailed = 24

export const make = (): YieldBudget => {
  let length = 0
  /** Batches and failed messages so far; each burst halves the weight of earlier ones. */
  let begun = 0
  let failed = 0

  const limit = (): number =>
    failed === 0 ? maxBatches : Math.min(maxBatches, Math.ceil((maxFailed * Math.max(1, begun)) / failed))

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
