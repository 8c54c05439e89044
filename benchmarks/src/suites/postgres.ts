import { entries } from "../Contender.ts"
import type { Case, Suite } from "../Suite.ts"

const entry = entries("postgres")

const libraries = (workload: string): Case["entries"] => [
  entry(workload, "requeue"),
  entry(workload, "pgBoss", "pg-boss"),
  entry(workload, "graphileWorker", "graphile-worker"),
  entry(workload, "bullmq", "BullMQ")
]

export const postgres: Suite = {
  name: "postgres",
  summary:
    "Requeue, pg-boss, graphile-worker and BullMQ on PostgreSQL: send, consume, and the time until a handler runs",
  byDefault: true,
  venue: "postgres",
  rounds: 5,
  cases: (size) => [
    {
      name: "send, 1 in flight",
      messages: size(3000),
      warmUp: size(500),
      job: { inFlight: 1 },
      entries: libraries("publish")
    },
    {
      name: "send, 100 in flight",
      messages: size(10_000),
      warmUp: size(2000),
      job: { inFlight: 100 },
      entries: libraries("publish")
    },
    {
      name: "send batches of 100",
      messages: size(50_000),
      warmUp: size(10_000),
      job: { size: 100 },
      entries: libraries("publishBatches")
    },
    {
      name: "consume, 100 in progress",
      messages: size(20_000),
      warmUp: size(5000),
      job: { window: 100, batch: false },
      entries: libraries("consume")
    },
    {
      name: "consume batches of 100",
      messages: size(50_000),
      warmUp: size(10_000),
      job: { window: 100, batch: true },
      entries: [entry("consume", "requeue"), entry("consume", "pgBoss", "pg-boss")]
    },
    {
      name: "send and consume, 200 a second",
      messages: size(2000),
      warmUp: size(200),
      job: { window: 100, batch: false, perSecond: 200 },
      entries: libraries("deliver")
    }
  ]
}
