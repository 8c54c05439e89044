import { type Entries, entries, type Job } from "../Contender.ts"
import type { Suite } from "../Suite.ts"
import { consuming, type Contenders } from "./consuming.ts"

const of = entries("nsq")

const consumers = (body: string, suffix: string): Entries => {
  const each = (library: string, name: string, job: Job = {}) =>
    of("consume", library, `${name}${suffix}`, { body, batch: false, ...job })
  return [
    each("nsqjs", "nsqjs"),
    each("requeue", "requeue"),
    each("requeue", "requeue, batches", { batch: true }),
    each("requeue", "requeue, its own messages", { sender: "requeue" })
  ]
}

const contenders: Contenders = { bytes: consumers("bytes", ""), json: consumers("json", ", JSON") }

const suite = { byDefault: true, venue: "nsq", rounds: 5 } as const

export const nsqConsume: Suite = {
  ...suite,
  name: "nsq-consume",
  summary: "consume and finish 150,000 messages of 256 bytes, handler that awaits nothing",
  cases: (size) =>
    consuming(contenders, {
      name: "100 in flight",
      job: { maxInFlight: 100 },
      messages: size(150_000),
      warmUp: size(10_000)
    })
}

export const nsqWindows: Suite = {
  ...suite,
  name: "nsq-windows",
  summary: "the same with 10 in flight",
  cases: (size) =>
    consuming(contenders, {
      name: "10 in flight",
      job: { maxInFlight: 10 },
      messages: size(150_000),
      warmUp: size(10_000)
    })
}

export const nsqPublish: Suite = {
  ...suite,
  name: "nsq-publish",
  summary: "publish 200,000 messages of 256 bytes, one by one, 100 in flight",
  cases: (size) => [
    {
      name: "100 in flight",
      messages: size(200_000),
      warmUp: size(10_000),
      job: { inFlight: 100, size: 256 },
      entries: [of("publish", "nsqjs"), of("publish", "requeue")]
    }
  ]
}

export const nsqRetry: Suite = {
  ...suite,
  name: "nsq-retry",
  summary: "2,000 messages on NSQ that fail once and are retried after 1 s",
  cases: (size) => [
    {
      name: "all fail once, 1 s",
      messages: size(2000),
      warmUp: 0,
      // In a new channel, nsqd checks for due messages only after 5 s.
      job: { maxInFlight: 100, delay: 1000, filled: true, age: 6000 },
      entries: [of("retry", "nsqjs"), of("retry", "requeue")]
    }
  ]
}
