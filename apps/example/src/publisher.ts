/** Publishes the webhooks in bursts, and counts those that the broker has confirmed. */
import { setTimeout as sleep } from "node:timers/promises"
import type { Requeue } from "@requeue/core/promise"
import { type Feed, makeFeed } from "./feed.ts"
import { webhook } from "./payloads.ts"
import { queue } from "./policy.ts"

/** Milliseconds from one burst to the next. */
const interval = 1000

/** The largest number of bursts, and the smallest number of messages in each but the last. */
const [maxBursts, minBurst] = [8, 100]

export const startPublisher = (requeue: Pick<Requeue, "sendBatch">, seed: number, total: number): Feed =>
  makeFeed(total, async (signal, onCount) => {
    const size = Math.max(minBurst, Math.ceil(total / maxBursts))
    for (let from = 0; from < total; from += size) {
      if (from > 0) await sleep(interval, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      const length = Math.min(size, total - from)
      await requeue.sendBatch(
        queue,
        Array.from({ length }, (_, i) => webhook(seed, from + i))
      )
      onCount(from + length)
    }
  })
