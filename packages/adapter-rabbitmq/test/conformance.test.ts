import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer } from "./harness.ts"
import { server } from "./server.ts"

const one = await server()

Suite.register({ describe, test, afterAll }, { name: `rabbitmq ${one.version}`, layer: layer(one) })
