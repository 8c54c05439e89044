/** Publishes the webhooks in bursts, as they would come in, and counts what the broker has confirmed. */
import { setTimeout as sleep } from "node:timers/promises"
import type { Requeue } from "@requeue/core/promise"
import { type Feed, makeFeed } from "./feed.ts"
import { webhook } from "./payloads.ts"
import { queue } from "./policy.ts"

/** An eighth of the messages every second, but no fewer than 100 at a time. */
const every = 1000
const bursts = 8
const fewest = 100

export const startPublisher = (requeue: Pick<Requeue, "sendBatch">, seed: number, total: number): Feed =>
  makeFeed(total, async (signal, onCount) => {
    const size = Math.max(fewest, Math.ceil(total / bursts))
    for (let from = 0; from < total; from += size) {
      if (from > 0) await sleep(every, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      const length = Math.min(size, total - from)
      await requeue.sendBatch(
        queue,
        Array.from({ length }, (_, i) => webhook(seed, from + i))
      )
      onCount(from + length)
    }
  })
