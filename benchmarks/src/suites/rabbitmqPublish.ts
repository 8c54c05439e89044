import { entries } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

const of = entries("rabbitmq")

const suite = { byDefault: true, venue: "rabbitmq", rounds: 5 } as const

export const rabbitmqPublish: Suite = {
  ...suite,
  name: "rabbitmq-publish",
  summary: "publish 50,000 persistent messages of 256 bytes with confirms, 100 in flight",
  cases: (size) => [
    {
      name: "confirms, 100 in flight",
      messages: size(50_000),
      warmUp: size(10_000),
      job: { inFlight: 100, size: 256 },
      entries: [
        of("publish", "amqplib"),
        of("publishBody", "amqplib", "amqplib, body only"),
        of("publish", "requeue"),
        of("publish", "rabbitmqClient", "rabbitmq-client"),
        of("publish", "rascal"),
        of("publish", "connectionManager", "amqp-connection-manager"),
        of("publish", "rhea", "rhea, AMQP 1.0")
      ]
    }
  ]
}

/** Each queue is published to in the warm-up. */
export const rabbitmqQueues: Suite = {
  ...suite,
  name: "rabbitmq-queues",
  summary: "publish 20,000 messages to 10 queues in turn, and to 10,000",
  byDefault: false,
  rounds: 3,
  cases: (size) =>
    [10, 10_000].map((queues) => ({
      name: `publish to ${queues.toLocaleString("en")} queues`,
      messages: size(20_000),
      warmUp: size(20_000),
      job: { inFlight: 100, size: 256, headers: 0, queues: Math.min(queues, size(20_000)), isShared: true },
      entries: [of("publishToMany", "amqplib"), of("sends", "requeue")]
    }))
}
