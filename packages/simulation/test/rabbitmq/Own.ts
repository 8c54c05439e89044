/** Makes cases of what only the RabbitMQ adapter has, each on a simulated server with settings of its own. */
import type { RabbitMqOptions } from "@requeue/adapter-rabbitmq"
import { Driver } from "@requeue/adapter-rabbitmq/driver"
import type { Case } from "@requeue/conformance"
import { Broker, type BrokerError } from "@requeue/core"
import { Outgoing } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Host from "../../src/servers/Host.ts"
import { make as makeDriver } from "../../src/servers/rabbitmq/Driver.ts"
import { type Options, Server } from "../../src/servers/rabbitmq/Server.ts"
import { Adapter } from "./harness.ts"

/** A broker in a process. */
interface Process {
  readonly broker: Broker.Service
  /** Breaks the connections of the broker. */
  readonly cut: () => void
}

/** A server, and a broker on it. */
export interface World extends Process {
  readonly server: Server
  /** A broker in another process. */
  readonly another: Effect.Effect<Process, unknown, Scope.Scope>
  /** Publishes a message. */
  readonly send: (
    queue: string,
    id: string,
    more?: Partial<Outgoing.Outgoing>
  ) => Effect.Effect<void, BrokerError.BrokerError>
}

/** Makes a case on a server and a broker with these settings. */
export const test = (
  name: string,
  [server, options]: readonly [Options, RabbitMqOptions.Options],
  body: (world: World) => Effect.Effect<void, unknown, Broker.Broker | Scope.Scope>
): Case.Case => ({
  name,
  group: "rabbitmq",
  run: Effect.gen(function* () {
    const { RabbitMqBroker } = Option.getOrThrow(yield* Effect.serviceOption(Adapter))
    const simulated = new Server(yield* Host.make, server)
    const connect = Effect.suspend(() => {
      const { cut, driver } = makeDriver(simulated)
      const made = Effect.provideService(RabbitMqBroker.make(options), Driver, driver)
      return Effect.map(made, (broker): Process => ({ broker, cut }))
    })
    const { broker, cut } = yield* connect
    const send: World["send"] = (queue, id, more = {}) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        broker.publish([
          {
            ...Outgoing.make({ queue, id, body: Buffer.from(JSON.stringify(id)), headers: {}, delay: 0 }, now),
            ...more
          }
        ])
      )
    yield* Effect.provideService(
      body({ server: simulated, broker, cut, another: connect, send }),
      Broker.Broker,
      broker
    )
  })
})
