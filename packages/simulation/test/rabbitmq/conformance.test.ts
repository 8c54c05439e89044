/** The conformance suite of the RabbitMQ adapter in virtual time, on simulated servers. */
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { toOptions, whole } from "./setups.ts"

for (const setup of whole) Suite.register({ describe, test, afterAll }, toOptions(setup, true))
