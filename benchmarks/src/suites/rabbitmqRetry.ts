import { type Entries, entries, type Entry, type Job } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

const of = entries("rabbitmq")

const suite = { byDefault: true, venue: "rabbitmq", rounds: 5 } as const

const against = (raw: string, job: Job = {}, ...ours: ReadonlyArray<Entry>): Entries => [
  of("retry", "amqplib", raw, job),
  of("retry", "amqplib", `${raw}, at least once`, { ...job, atLeastOnce: true }),
  ...(ours.length === 0 ? [of("retry", "requeue")] : ours)
]

const byHand = "amqplib, wait queue by hand"

export const rabbitmqRetry: Suite = {
  ...suite,
  name: "rabbitmq-retry",
  summary: "2,000 messages that fail once and are retried after 1 s",
  cases: (size) => [
    {
      name: "all fail once, 1 s",
      messages: size(2000),
      warmUp: 0,
      job: { prefetch: 100, delays: "1000", failing: 100, filled: true, rehearsed: size(1000) },
      entries: against(byHand)
    }
  ]
}

export const rabbitmqFailing: Suite = {
  ...suite,
  name: "rabbitmq-failing",
  summary: "20,000 messages of which 1, 10 or 50 % fail once and are retried after 1 s",
  cases: (size) =>
    [1, 10, 50].map((failing) => ({
      name: `${failing} % fail once`,
      messages: size(20_000),
      warmUp: 0,
      job: { prefetch: 100, delays: "1000", failing, filled: true, rehearsed: size(1000) },
      entries: [
        ...against(byHand),
        // A run without failures shows what a failing minority costs.
        ...(failing === 1 ? [of("retry", "requeue", "requeue, none fails", { failing: 0 })] : [])
      ]
    }))
}

export const rabbitmqSteady: Suite = {
  ...suite,
  name: "rabbitmq-steady",
  summary: "500 messages a second for 10 s, of which 10 % fail once and are retried after 1 s: are they on time?",
  cases: (size) => [
    {
      name: "10 % fail once, 1 s",
      messages: size(5000),
      warmUp: 0,
      job: { prefetch: 100, delays: "1000", failing: 10, perSecond: 500, rehearsed: size(1000) },
      entries: against(
        byHand,
        {},
        of("retry", "requeue", "requeue, ladder", { topology: "ladder" }),
        of("retry", "requeue", "requeue, levels", { topology: "levels" })
      )
    }
  ]
}

const mixed = { prefetch: 1000, delays: "100,5000,250,2000,500,1000", failing: 100, filled: true }

export const rabbitmqDelays: Suite = {
  ...suite,
  name: "rabbitmq-delays",
  summary:
    "1,000 messages that are retried after 100 ms to 5 s, mixed; in a process that has done so before, and in a cold one",
  rounds: 3,
  cases: (size) => [
    {
      name: "mixed delays",
      messages: size(1000),
      warmUp: 0,
      job: { ...mixed, rehearsed: size(1000) },
      entries: against("amqplib, a time to live on each message")
    },
    {
      name: "mixed delays, cold",
      messages: size(1000),
      warmUp: 0,
      job: { ...mixed, rehearsed: 0 },
      entries: against("amqplib, a wait queue for each delay", { isEach: true })
    }
  ]
}
