/** The conformance suite of the RabbitMQ adapter in virtual time, on simulated servers. */
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer, type Setup } from "./harness.ts"

const setups: Readonly<Record<string, Setup>> = {
  "rabbitmq 4.3": {}
}

for (const [name, setup] of Object.entries(setups)) {
  Suite.register({ describe, test, afterAll }, { name, layer: layer(setup), virtualTime: true })
}
