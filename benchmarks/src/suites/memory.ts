import { entries } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

const of = entries("memory")

export const memory: Suite = {
  name: "memory",
  summary: "1,000,000 messages in one process, 64 at a time; 8,000 in batches of 100",
  byDefault: true,
  venue: undefined,
  rounds: 5,
  cases: (size) => [
    {
      name: "promise handlers, 64 at a time",
      messages: size(1_000_000),
      warmUp: size(100_000),
      job: { concurrency: 64 },
      entries: [
        of("single", "fastq"),
        of("single", "requeue"),
        of("batch", "requeue", "requeue, batches"),
        of("single", "pQueue", "p-queue"),
        of("single", "effectQueue", "Effect Queue")
      ]
    },
    {
      name: "batches of 100",
      // Miniflare's queue holds no more than 10,000.
      messages: size(8000),
      warmUp: size(1000),
      job: { concurrency: 100 },
      entries: [of("batch", "requeue"), of("batch", "miniflare", "Miniflare")]
    }
  ]
}

/** Every entry handles the same number of messages; the backlog after them differs. */
export const growth: Suite = {
  name: "growth",
  summary: "CPU and heap per message at backlogs of 10,000, 100,000 and 1,000,000",
  byDefault: true,
  venue: undefined,
  rounds: 5,
  cases: (size) => [
    {
      name: "memory broker",
      messages: size(100_000),
      warmUp: size(10_000),
      job: { concurrency: 64 },
      entries: [
        of("single", "requeue", "behind it 10,000", { backlog: size(10_000) }),
        of("single", "requeue", "behind it 100,000", { backlog: size(100_000) }),
        of("single", "requeue", "behind it 1,000,000", { backlog: size(1_000_000) })
      ]
    }
  ]
}

/** Calls on the messages of a batch cost the same whatever its size. */
export const batches: Suite = {
  name: "batches",
  summary: "500,000 messages in batches of 10 and of 100, each acked separately, or all at once",
  byDefault: true,
  venue: undefined,
  rounds: 5,
  cases: (size) =>
    [true, false].map((ofEach) => ({
      name: ofEach ? "each message acked" : "all acked at once",
      messages: size(500_000),
      warmUp: size(50_000),
      job: { ofEach },
      entries: [
        of("acking", "requeue", "batches of 10", { maxBatchSize: 10 }),
        of("acking", "requeue", "batches of 100", { maxBatchSize: 100 })
      ]
    }))
}
