/** Sends the dead letters back to work, not all at once: a subscriber that has just got up is not to be run over. */
import type { DeadLetterQueue } from "@requeue/core/promise"
import { type Feed, makeFeed } from "./feed.ts"

/** All of them take about 3 seconds, and few of them less. */
const seconds = 3
const slowest = 50

export const startRedrive = (deadLetters: Pick<DeadLetterQueue, "redrive">, total: number): Feed =>
  makeFeed(total, async (signal, onCount) => {
    await deadLetters.redrive({
      rate: Math.max(slowest, total / seconds),
      // Once stopped, the rest stay dead letters.
      filter: () => !signal.aborted,
      onProgress: ({ redriven }) => onCount(redriven)
    })
  })
