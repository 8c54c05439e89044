import { entries, type Entry } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

const of = entries("rabbitmq")

const behind = (filled: number): Entry => of("consume", "requeue", `backlog ${filled.toLocaleString("en")}`, { filled })

export const rabbitmqGrowth: Suite = {
  name: "rabbitmq-growth",
  summary: "CPU and heap per consumed message at backlogs of 10,000, 100,000 and 1,000,000; minutes",
  byDefault: false,
  venue: "rabbitmq",
  rounds: 3,
  cases: (size) => [
    {
      name: "consume, prefetch 100",
      messages: size(8000),
      warmUp: size(2000),
      job: { prefetch: 100, body: "bytes", batch: false },
      entries: [behind(size(10_000)), behind(size(100_000)), behind(size(1_000_000))]
    }
  ]
}

export const rabbitmqSoak: Suite = {
  name: "rabbitmq-soak",
  summary: "10 minutes at 500 messages a second, 10 % of them retried: does the resident memory grow?",
  byDefault: false,
  venue: "rabbitmq",
  rounds: 1,
  cases: (size) => [
    {
      name: "500 messages a second",
      messages: size(300_000),
      warmUp: size(30_000),
      job: { perSecond: 500, delay: 1000, failing: 10 },
      deadline: 15 * 60_000,
      entries: [of("soak", "requeue")]
    }
  ]
}
