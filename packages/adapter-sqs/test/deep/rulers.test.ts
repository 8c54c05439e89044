/** The rulers: on a real server, whatever else the machine does, they tell a broker that is early or late from ours. */
import { Cases, Mutant, Mutants, Suite } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { afterAll, describe, test } from "vitest"
import { layer } from "../real/harness.ts"
import { capabilities, open } from "../real/suite.ts"

const target = await open("fauxqs", 400)
const options = { name: target.name, layer: layer(target) }
const bound = target.lateness + capabilities.delayResolution

test.concurrent.for([Mutants.shifted(2 * bound), Mutants.shifted(-20)])(
  "a broker that $name is found",
  async (mutant, context) => {
    Mutant.report(context, await Effect.runPromise(Mutant.run(mutant, options)))
  }
)

Suite.register(
  { describe, test, afterAll },
  { ...options, cases: Cases.cases.filter(({ name }) => name === Mutants.shifted(-20).kills) }
)
