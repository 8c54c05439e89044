/** The contract of RabbitMQ on a real server. */
import { Driver } from "@requeue/adapter-rabbitmq/driver"
import { start } from "@requeue/brokers"
import * as Effect from "effect/Effect"
import { afterAll } from "vitest"
import { register } from "../contract/Contract.ts"
import { rows } from "../rabbitmq/contract.ts"

const broker = await start("rabbitmq", { version: process.env["REQUEUE_RABBITMQ_VERSION"] ?? "newest" })
afterAll(() => broker.dispose())

const open = Effect.gen(function* () {
  return { driver: yield* Driver, url: broker.url }
})
register(rows(broker.version), { name: `RabbitMQ ${broker.version}`, open, isVirtual: false })
