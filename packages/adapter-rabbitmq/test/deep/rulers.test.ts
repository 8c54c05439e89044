/** That the suite tells on this broker, on any machine, what is early or late from what is not. */
import { Cases, Mutant, Mutants, Suite } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { afterAll, describe, test } from "vitest"
import * as Capabilities from "../../src/internal/capabilities.ts"
import { layer, lateness, settingsOf } from "../real/harness.ts"
import { shared } from "../real/server.ts"

const one = await shared()
const bound = lateness + Capabilities.make(settingsOf({}), one.version).delayResolution
const { kills } = Mutants.shifted(0)
const options: Suite.Options = {
  name: `rabbitmq ${one.version}`,
  layer: layer(one),
  cases: Cases.cases.filter(({ name }) => name === kills)
}

describe.concurrent("a broker", () => {
  test.for([2 * bound, -20])("that hands over retries %d ms late is found out", async (by, context) => {
    Mutant.report(context, await Effect.runPromise(Mutant.run(Mutants.shifted(by), options)))
  })
})

Suite.register({ describe, test, afterAll }, options)
