import { entries } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

const of = entries("rabbitmq")

/** The raw client's figures with the same backlog show what the broker's own work costs a client. */
export const rabbitmqGrowth: Suite = {
  name: "rabbitmq-growth",
  summary:
    "CPU and heap per consumed message with 10,000, 100,000 and 1,000,000 behind it, against raw at each; minutes",
  byDefault: false,
  venue: "rabbitmq",
  rounds: 3,
  cases: (size) =>
    [10_000, 100_000, 1_000_000].map((behind) => ({
      name: `behind it ${behind.toLocaleString("en")}`,
      messages: size(16_000),
      warmUp: size(4000),
      // One queue for all rounds, filled up before each of them.
      job: { prefetch: 100, body: "bytes", batch: false, filled: size(behind), isShared: true },
      entries: [of("consume", "amqplib"), of("consume", "requeue")]
    }))
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
