import { entries, type Job } from "../Contender.ts"
import type { Suite } from "../Suite.ts"
import { consuming, type Contenders } from "./consuming.ts"

const contender = entries("rabbitmq")

const of = (library: string, name = library, job: Job = {}) =>
  contender("consume", library, name, { body: "bytes", batch: false, ...job })

const raw = of("amqplib", "amqplib")

const ours = [of("requeue", "requeue"), of("requeue", "requeue, batches", { batch: true })]

const contenders: Contenders = {
  bytes: [
    raw,
    ...ours,
    of("rabbitmqClient", "rabbitmq-client"),
    of("rascal"),
    of("golevelup"),
    of("connectionManager", "amqp-connection-manager"),
    of("rhea", "rhea, AMQP 1.0")
  ],
  json: [
    of("amqplib", "amqplib, JSON", { body: "json" }),
    of("requeue", "requeue, JSON", { body: "json" }),
    of("requeue", "requeue, batches, JSON", { body: "json", batch: true }),
    of("rabbitmqClient", "rabbitmq-client, JSON", { body: "json" }),
    of("rascal", "rascal, JSON", { body: "json" }),
    of("golevelup", "golevelup, JSON", { body: "json" }),
    of("messageQueueToolkit", "message-queue-toolkit, JSON", { body: "json" })
  ]
}

const suite = {
  byDefault: true,
  venue: "rabbitmq",
  rounds: 5
} as const

export const rabbitmqConsume: Suite = {
  ...suite,
  name: "rabbitmq-consume",
  summary: "consume and acknowledge 40,000 messages of 256 bytes, handler that awaits nothing",
  cases: (size) =>
    consuming(contenders, {
      name: "prefetch 100",
      job: { prefetch: 100 },
      messages: size(40_000),
      warmUp: size(10_000)
    })
}

export const rabbitmqWindows: Suite = {
  ...suite,
  name: "rabbitmq-windows",
  summary: "the same with a prefetch of 10, 15,000 messages",
  cases: (size) =>
    consuming(contenders, { name: "prefetch 10", job: { prefetch: 10 }, messages: size(15_000), warmUp: size(5000) })
}

export const rabbitmqCold: Suite = {
  ...suite,
  name: "rabbitmq-cold",
  summary: "the first 10,000 messages of a process: nothing is warm, and the first one counts",
  cases: (size) => [
    {
      name: "first 10,000, prefetch 100",
      messages: size(10_000),
      warmUp: 0,
      job: { prefetch: 100, filled: true },
      entries: [raw, ...ours, of("rabbitmqClient", "rabbitmq-client"), of("rascal")]
    }
  ]
}

/** Fails if the CPU per message, compared with raw of the same run, is twice what it was when this was written. */
export const guard: Suite = {
  ...suite,
  name: "guard",
  summary: "CPU per consumed message against raw, in half a minute; fails when the ratio has doubled",
  byDefault: false,
  rounds: 3,
  cases: () => [
    {
      name: "bytes, prefetch 100",
      messages: 15_000,
      warmUp: 5000,
      job: { prefetch: 100, filled: true },
      entries: [raw, ...ours]
    }
  ],
  // Usually 1.0 to 1.3 with so small a number.
  limits: { requeue: 2, "requeue, batches": 2 }
}
