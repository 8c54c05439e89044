import { start, strictSqs } from "@requeue/brokers"
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer } from "./harness.ts"

const broker = await start("sqs", { version: "fauxqs" })
const strict = await strictSqs(broker)
afterAll(async () => {
  await strict.close()
  await broker.dispose()
})

Suite.register(
  { describe, test, afterAll },
  {
    name: `sqs ${broker.version}`,
    layer: layer({ name: broker.version, url: broker.url, proxied: strict.url, cutConnections: undefined })
  }
)
