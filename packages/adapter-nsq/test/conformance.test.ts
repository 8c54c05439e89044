import { start } from "@requeue/brokers"
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer } from "./harness.ts"

const one = await start("nsq", { flags: { "queue-scan-selection-count": 1000 } })
afterAll(() => one.dispose())

Suite.register(
  { describe, test, afterAll },
  { name: `nsq ${one.version}`, layer: layer(one, { by: "address", lateness: 100 }) }
)
