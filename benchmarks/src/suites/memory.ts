import type { Entry } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

const of = (library: string, name: string, workload = "single", job: Entry["job"] = {}): Entry => ({
  name,
  contender: `memory/${library}`,
  workload,
  job
})

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
        of("fastq", "fastq"),
        of("requeue", "requeue"),
        of("requeue", "requeue, batches", "batch"),
        of("pQueue", "p-queue"),
        of("effectQueue", "Effect Queue")
      ]
    },
    {
      name: "batches of 100",
      // Miniflare's queue holds no more than 10,000.
      messages: size(8000),
      warmUp: size(1000),
      job: { concurrency: 100 },
      entries: [of("requeue", "requeue", "batch"), of("miniflare", "Miniflare", "batch")]
    }
  ]
}

/** Every entry handles as many messages; what differs is how many more wait behind them. */
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
        of("requeue", "behind it 10,000", "single", { backlog: size(10_000) }),
        of("requeue", "behind it 100,000", "single", { backlog: size(100_000) }),
        of("requeue", "behind it 1,000,000", "single", { backlog: size(1_000_000) })
      ]
    }
  ]
}
