/** The conformance suite on RabbitMQ, with lateness. */
import { Cases, Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer } from "../real/harness.ts"
import { register } from "../real/suite.ts"

const one = await register("judged")

// What is in flight is known by the management interface alone.
const { managementUrl } = one.broker
if (managementUrl !== undefined) {
  Suite.register(
    { describe: describe.concurrent, test: test.concurrent, afterAll },
    {
      name: `rabbitmq ${one.version} with management`,
      layer: layer(one, { management: managementUrl }),
      cases: Cases.cases.filter(({ group }) => group === "redriving in stages")
    }
  )
}
