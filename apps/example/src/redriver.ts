/** Redrives the dead letters at a limited rate, to protect subscribers that have just recovered; or leaves that to others. */
import type { DeadLetterQueue } from "@requeue/operations/promise"
import { type Feed, makeFeed } from "./feed.ts"

/** The length of a redrive in seconds, unless that is slower than the smallest rate. */
const seconds = 3

/** The smallest rate, in messages a second. */
const minRate = 50

export const startRedrive = (deadLetters: Pick<DeadLetterQueue, "redrive">, total: number): Feed =>
  makeFeed(total, async (signal, onCount) => {
    await deadLetters.redrive({
      rate: Math.max(minRate, total / seconds),
      // After the stop, all others stay dead letters.
      filter: () => !signal.aborted,
      onProgress: ({ redriven }) => onCount(redriven)
    })
  })

/** Leaves the redrive to others, who report its end by a signal. */
export const awaitRedrive = (total: number): Feed => ({
  total,
  count: () => total,
  isOver: () => false,
  stop: async () => {}
})
