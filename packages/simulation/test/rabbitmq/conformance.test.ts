/** The conformance suite of the RabbitMQ adapter in virtual time, on simulated servers. */
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer, type Setup } from "./harness.ts"

const setups: Readonly<Record<string, Setup>> = {
  "rabbitmq 4.3": {},
  "rabbitmq 4.3 ladder": { options: { topology: "ladder" } },
  "rabbitmq 4.3 levels": { options: { topology: "levels" } },
  "rabbitmq 4.3 perMessageTtl": { options: { topology: "perMessageTtl" } },
  "rabbitmq 4.3 perDelayQueue": { options: { topology: "perDelayQueue" } },
  "rabbitmq 4.3 waitLoop": { options: { topology: "waitLoop" } },
  "rabbitmq 4.3 native": { options: { topology: "native" } },
  "rabbitmq 4.3 classic": { options: { queueType: "classic" } },
  "rabbitmq 4.3 with management": { options: { management: "http://localhost:15672" } },
  "rabbitmq 4.0": { server: { version: "4.0.5" } },
  "rabbitmq 3.10": { server: { version: "3.10.8" } },
  "rabbitmq 3.10 classic": { server: { version: "3.10.8" }, options: { queueType: "classic" } },
}

for (const [name, setup] of Object.entries(setups)) {
  Suite.register({ describe, test, afterAll }, { name, layer: layer(setup), virtualTime: true })
}
