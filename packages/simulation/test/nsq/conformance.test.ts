/** The conformance suite on the adapter that ships, in virtual time: on one nsqd, and on two that nsqlookupd finds. */
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { besideMemory } from "../besideMemory.ts"
import { layer } from "./harness.ts"

const runs = {
  "one nsqd": layer(),
  "two nsqd that nsqlookupd finds": layer({ nodes: 2, by: "nsqlookupd" })
}

const runner = { describe, test, afterAll }

for (const [name, each] of Object.entries(runs)) {
  const options = { name: `nsq on ${name}, simulated`, layer: each, virtualTime: true }
  Suite.register(runner, options)
  Suite.register(runner, besideMemory(options))
}
