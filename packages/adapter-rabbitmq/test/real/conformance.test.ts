/** The conformance suite on RabbitMQ: facts only, so a busy machine cannot fail it. test/deep judges lateness. */
import { Mutant, Mutants, type Suite } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { test } from "vitest"
import { layer } from "./harness.ts"
import { register } from "./suite.ts"

const one = await register("ignored")
const options: Suite.Options = { name: "rabbitmq", layer: layer(one), lateness: "ignored" }

test.concurrent("a broker that is 5 ms early is found", async (context) => {
  Mutant.report(context, await Effect.runPromise(Mutant.runUntilKilled(Mutants.shifted(-5), options)))
})
