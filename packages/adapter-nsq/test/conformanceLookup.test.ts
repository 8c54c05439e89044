import { start } from "@requeue/brokers"
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer } from "./harness.ts"

const two = await start("nsq", { nodes: 2, flags: { "queue-scan-selection-count": 1000 } })
afterAll(() => two.dispose())

// Four connections share what is often a credit of 2, so that a message may wait for its turn.
Suite.register(
  { describe, test, afterAll },
  { name: `nsq ${two.version}, found by nsqlookupd`, layer: layer(two, { by: "nsqlookupd", lateness: 300 }) }
)
