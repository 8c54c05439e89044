/** The cases of the conformance suite that depend on the topology, in virtual time, on every topology. */
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { others, toOptions } from "./setups.ts"

for (const setup of others) Suite.register({ describe, test, afterAll }, toOptions(setup, false))
