/** The conformance suite on an SQS server: facts only, so a busy machine cannot fail it. test/deep judges lateness. */
import { Mutant, Mutants } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { test } from "vitest"
import { register } from "./suite.ts"

const options = await register("fauxqs", 400, "ignored")

test.concurrent("a broker that is 5 ms early is found", async (context) => {
  Mutant.report(context, await Effect.runPromise(Mutant.runUntilKilled(Mutants.shifted(-5), options)))
})
