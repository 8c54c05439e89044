/** Redrives the dead letters at a limited rate, so that subscribers that have just recovered are not overloaded; or lets others. */
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

/** The dead letters that somebody else redrives, who tells by a signal when they have done so. */
export const awaitRedrive = (total: number): Feed => ({
  total,
  count: () => total,
  isOver: () => false,
  stop: async () => {}
})
