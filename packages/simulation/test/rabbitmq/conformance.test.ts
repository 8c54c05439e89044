/** The conformance suite of the RabbitMQ adapter in virtual time, on simulated servers. */
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { besideMemory } from "../besideMemory.ts"
import { toOptions, whole } from "./setups.ts"

const runner = { describe, test, afterAll }
for (const setup of whole) Suite.register(runner, toOptions(setup, true))
for (const setup of whole) Suite.register(runner, besideMemory(toOptions(setup, true)))
