import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer } from "./harness.ts"
import { proxy } from "./proxy.ts"

const link = await proxy(35672)
const server = { url: "amqp://guest:guest@127.0.0.1:35672", proxied: `amqp://guest:guest@127.0.0.1:${link.port}`, cut: link.cut }

Suite.register({ describe, test, afterAll }, { name: "rabbitmq", layer: layer(server) })
