/** The conformance suite on the adapter that ships, in virtual time: on one nsqd, and on two that nsqlookupd finds. */
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer } from "./harness.ts"

const runs = {
  "one nsqd": layer(),
  "two nsqd that nsqlookupd finds": layer({ nodes: 2, by: "nsqlookupd" })
}

for (const [name, each] of Object.entries(runs)) {
  Suite.register({ describe, test, afterAll }, { name: `nsq on ${name}, simulated`, layer: each, virtualTime: true })
}
