/** Publishes the webhooks in bursts, except those of earlier runs, and counts them. */
import { setTimeout as sleep } from "node:timers/promises"
import type { Backlog } from "./backlog.ts"
import { type Feed, makeFeed } from "./feed.ts"
import type { Journal } from "./journal.ts"
import { type Webhook, webhook } from "./payloads.ts"

/** Milliseconds from one burst to the next. */
const interval = 1000

/** The largest number of bursts, and the smallest number of messages in each but the last. */
const [maxBursts, minBurst] = [8, 100]

interface Options {
  /** Sends a burst. It resolves when none of it can be lost. */
  readonly send: (burst: ReadonlyArray<Webhook>) => Promise<unknown>
  readonly seed: number
  readonly count: number
  readonly backlog: Backlog
  readonly journal: Journal
}

/** Starts the feed of the queue: its messages are those of the backlog and those that it publishes. */
export const startPublisher = ({ backlog, count, journal, seed, send }: Options): Feed =>
  makeFeed(count - backlog.ended, async (signal, onCount) => {
    const size = Math.max(minBurst, Math.ceil(count / maxBursts))
    let fed = backlog.size
    onCount(fed)
    for (let from = 0; from < count; from += size) {
      const length = Math.min(size, count - from)
      const all = Array.from({ length }, (_, i) => webhook(seed, from + i))
      const burst = all.filter(({ id }) => !backlog.isPublished(id))
      if (burst.length === 0) continue
      if (fed > 0) await sleep(interval, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      await send(burst)
      journal.write({ published: from + length })
      fed += burst.length
      onCount(fed)
    }
  })
