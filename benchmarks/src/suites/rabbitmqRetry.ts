import { type Entries, entries } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

const of = entries("rabbitmq")

const against = (raw: string): Entries => [
  of("retry", "amqplib", raw),
  of("retry", "amqplib", `${raw}, at least once`, { atLeastOnce: true }),
  of("retry", "requeue")
]

const byHand = against("amqplib, wait queue by hand")

export const rabbitmqRetry: Suite = {
  name: "rabbitmq-retry",
  summary: "2,000 messages that fail once and come again after 1 s",
  byDefault: true,
  venue: "rabbitmq",
  rounds: 5,
  cases: (size) => [
    {
      name: "all fail once, 1 s",
      messages: size(2000),
      warmUp: 0,
      job: { prefetch: 100, delays: "1000", failing: 100, filled: true, rehearsed: size(1000) },
      entries: byHand
    }
  ]
}

export const rabbitmqFailing: Suite = {
  name: "rabbitmq-failing",
  summary: "20,000 messages of which 1, 10 or 50 % fail once and come again after 1 s",
  byDefault: true,
  venue: "rabbitmq",
  rounds: 5,
  cases: (size) =>
    [1, 10, 50].map((failing) => ({
      name: `${failing} % fail once`,
      messages: size(20_000),
      warmUp: 0,
      job: { prefetch: 100, delays: "1000", failing, filled: true, rehearsed: size(1000) },
      entries: byHand
    }))
}

export const rabbitmqDelays: Suite = {
  name: "rabbitmq-delays",
  summary: "1,000 messages that come again after 100 ms to 5 s, mixed",
  byDefault: true,
  venue: "rabbitmq",
  rounds: 5,
  cases: (size) => [
    {
      name: "mixed delays",
      messages: size(1000),
      warmUp: 0,
      job: { prefetch: 1000, delays: "100,5000,250,2000,500,1000", failing: 100, filled: true, rehearsed: size(1000) },
      entries: against("amqplib, a time to live on each message")
    }
  ]
}
