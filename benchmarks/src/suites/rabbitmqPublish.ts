import { entries } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

const of = entries("rabbitmq")

export const rabbitmqPublish: Suite = {
  name: "rabbitmq-publish",
  summary: "publish 50,000 persistent messages of 256 bytes with confirms, 100 in flight",
  byDefault: true,
  venue: "rabbitmq",
  rounds: 5,
  cases: (size) => [
    {
      name: "confirms, 100 in flight",
      messages: size(50_000),
      warmUp: size(10_000),
      job: { inFlight: 100, size: 256 },
      entries: [
        of("publish", "amqplib"),
        of("publish", "requeue"),
        of("publish", "rabbitmqClient", "rabbitmq-client"),
        of("publish", "rascal")
      ]
    }
  ]
}
