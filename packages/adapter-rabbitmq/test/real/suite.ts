/** The conformance suite on RabbitMQ. */
import { Case, Cases, Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import * as Capabilities from "../../src/internal/capabilities.ts"
import { layer, settingsOf } from "./harness.ts"
import { server, type Server } from "./server.ts"

/** Registers the cases side by side, as they mostly wait; then those that cut connections or restart the server, one by one. */
export const register = async (lateness: "judged" | "ignored"): Promise<Server> => {
  const one = await server()
  const name = `rabbitmq ${one.version}`
  const capabilities = Capabilities.make(settingsOf({}), one.version)
  const isAlone = (each: Case.Case): boolean => Case.isDisruptive(each, capabilities)
  Suite.register(
    { describe: describe.concurrent, test: test.concurrent, afterAll },
    { name, layer: layer(one), lateness, cases: Cases.cases.filter((each) => !isAlone(each)) }
  )
  Suite.register(
    { describe, test, afterAll },
    { name: `${name}, disturbed`, layer: layer(one), lateness, cases: Cases.cases.filter(isAlone) }
  )
  return one
}
