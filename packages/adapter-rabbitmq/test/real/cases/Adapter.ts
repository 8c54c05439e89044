/** Cases of what this adapter alone has. They run on the adapter of the harness, which a mutant may have broken. */
import { Broker } from "@requeue/core"
import type { Case } from "@requeue/conformance"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { clean } from "../../../src/clean.ts"
import type { RabbitMqBroker, RabbitMqOptions } from "../../../src/index.ts"
import type { Server } from "../server.ts"

/** The adapter's own entries, and the server that they lead to. */
interface Service {
  readonly server: Server
  readonly open: typeof RabbitMqBroker.make
  readonly clean: typeof clean
}

export class Adapter extends Context.Service<Adapter, Service>()("requeue/test/rabbitmq/Adapter") {}

type Requirements = Broker.Broker | Scope.Scope

/** Makes a case; `body` gets the adapter and a function that runs a program on a broker with options of its own. */
export const test = (
  name: string,
  body: (
    adapter: Service,
    on: <A>(
      options: RabbitMqOptions.Options,
      program: (broker: Broker.Service) => Effect.Effect<A, unknown, Requirements>
    ) => Effect.Effect<A, unknown>
  ) => Effect.Effect<void, unknown, Scope.Scope>
): Case.Case => ({
  name,
  group: "rabbitmq",
  run: Effect.gen(function* () {
    const adapter = Option.getOrThrow(yield* Effect.serviceOption(Adapter))
    yield* body(adapter, (options, program) =>
      Effect.flatMap(adapter.open({ url: adapter.server.proxied, ...options }), (broker) =>
        Effect.provideService(program(broker), Broker.Broker, broker)
      ).pipe(Effect.scoped)
    )
  })
})
