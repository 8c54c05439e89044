/** The conformance suite on nsqd: facts only, so a busy machine cannot fail it. test/deep judges lateness. */
import { Mutant, Mutants } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { test } from "vitest"
import { lateness } from "../world.ts"
import { register } from "./suite.ts"

const options = await register("", 1, { by: "address", lateness }, "ignored")

test.concurrent("a broker that is 5 ms early is found", async (context) => {
  Mutant.report(context, await Effect.runPromise(Mutant.runUntilKilled(Mutants.shifted(-5), options)))
})
