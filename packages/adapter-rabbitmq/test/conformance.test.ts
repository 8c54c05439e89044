import { Case, Cases, Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import * as Capabilities from "../src/internal/capabilities.ts"
import { layer, settingsOf } from "./harness.ts"
import { server } from "./server.ts"

const one = await server()
const name = `rabbitmq ${one.version}`
const capabilities = Capabilities.make(settingsOf({}), one.version)
const isAlone = (each: Case.Case): boolean => Case.isDisruptive(each, capabilities)

// The cases side by side, as they mostly wait; then those that cut connections or restart the server, one by one.
Suite.register(
  { describe: describe.concurrent, test: test.concurrent, afterAll },
  { name, layer: layer(one), cases: Cases.cases.filter((each) => !isAlone(each)) }
)
Suite.register(
  { describe, test, afterAll },
  { name: `${name}, disturbed`, layer: layer(one), cases: Cases.cases.filter(isAlone) }
)

// What is in flight is known by the management interface alone.
const { managementUrl } = one.broker
if (managementUrl !== undefined) {
  Suite.register(
    { describe: describe.concurrent, test: test.concurrent, afterAll },
    {
      name: `${name} with management`,
      layer: layer(one, { management: managementUrl }),
      cases: Cases.cases.filter(({ group }) => group === "redriving in stages")
    }
  )
}
