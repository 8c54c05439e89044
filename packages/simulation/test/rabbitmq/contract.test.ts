/** The contract of RabbitMQ on simulated servers. */
import * as Effect from "effect/Effect"
import * as Host from "../../src/servers/Host.ts"
import { make as makeDriver } from "../../src/servers/rabbitmq/Driver.ts"
import { Server } from "../../src/servers/rabbitmq/Server.ts"
import { register } from "../contract/Contract.ts"
import { rows } from "./contract.ts"

for (const version of ["3.10.8", "4.0.5", "4.3.6"]) {
  const open = Effect.map(Host.make, (host) => {
    const { driver } = makeDriver(new Server(host, { version }))
    return { driver, url: "amqp://localhost" }
  })
  register(rows(version), { name: `RabbitMQ ${version}, simulated`, open, isVirtual: true })
}
