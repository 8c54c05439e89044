import { type Entries, entries, type Job } from "../Contender.ts"
import type { Suite } from "../Suite.ts"
import { consuming } from "./consuming.ts"

const contender = entries("rabbitmq")

const of = (library: string, name = library, job: Job = {}) =>
  contender("consume", library, name, { body: "bytes", batch: false, ...job })

const raw = of("amqplib", "amqplib")

const bytes: Entries = [
  raw,
  of("requeue", "requeue"),
  of("requeue", "requeue, batches", { batch: true }),
  of("rabbitmqClient", "rabbitmq-client"),
  of("rascal"),
  of("golevelup")
]

const json: Entries = [
  of("amqplib", "amqplib, JSON", { body: "json" }),
  of("requeue", "requeue, JSON", { body: "json" }),
  of("rabbitmqClient", "rabbitmq-client, JSON", { body: "json" }),
  of("rascal", "rascal, JSON", { body: "json" }),
  of("golevelup", "golevelup, JSON", { body: "json" }),
  of("messageQueueToolkit", "message-queue-toolkit, JSON", { body: "json" })
]

export const rabbitmqConsume: Suite = {
  name: "rabbitmq-consume",
  summary: "consume and acknowledge 50,000 messages of 256 bytes, handler that awaits nothing",
  byDefault: true,
  venue: "rabbitmq",
  rounds: 5,
  cases: consuming({ bytes, json }, (prefetch) => ({ name: `prefetch ${prefetch}`, job: { prefetch } }))
}

/** Fails when the CPU per message, compared with raw of the same run, is twice what it was when this was written. */
export const guard: Suite = {
  name: "guard",
  summary: "CPU per consumed message against raw, in half a minute; fails when the ratio has doubled",
  byDefault: false,
  venue: "rabbitmq",
  rounds: 3,
  cases: () => [
    {
      name: "bytes, prefetch 100",
      messages: 15_000,
      warmUp: 5000,
      job: { prefetch: 100, filled: true },
      entries: [raw, of("requeue", "requeue"), of("requeue", "requeue, batches", { batch: true })]
    }
  ],
  // Usually 1.4 to 1.8 of so few messages: a third of the difference is a collector that begins with a small heap.
  limits: { requeue: 2.4, "requeue, batches": 2.2 }
}
