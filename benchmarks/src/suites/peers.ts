import { entries } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

const rabbitmq = entries("rabbitmq")
const redis = entries("redis")

/** References: another broker with other promises. The figures describe whole systems, and do not rank them. */
export const peers: Suite = {
  name: "peers",
  summary: "Requeue on RabbitMQ and BullMQ on Redis: handle 20,000 messages, and publish as many",
  byDefault: false,
  venue: "redis",
  rounds: 3,
  cases: (size) => [
    {
      name: "handle, 100 at a time",
      messages: size(20_000),
      warmUp: size(5000),
      job: { prefetch: 100, filled: true, body: "json", batch: false },
      entries: [rabbitmq("consume", "requeue"), redis("consume", "bullmq", "BullMQ")]
    },
    {
      name: "publish, 100 in flight",
      messages: size(20_000),
      warmUp: size(5000),
      job: { inFlight: 100, size: 256 },
      entries: [rabbitmq("publish", "requeue"), redis("publish", "bullmq", "BullMQ")]
    }
  ]
}
