/** Connections to brokers. Each opens on its first use, stays open, and opens again after a failure. */
import { Broker, Failure } from "@requeue/core"
import { type Capabilities, KnownQueues } from "@requeue/core/port"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { BrokerSource, Operations, Queue } from "../../BrokerSource.ts"
import * as Secrets from "../secrets.ts"

/** The error of a broker that does not answer. Its message has no secrets. */
export class Trouble extends Data.TaggedError("Trouble")<{ readonly broker: string; readonly message: string }> {}

/** A broker, connected or not. */
export interface Connection {
  readonly name: string
  readonly queues: ReadonlyArray<Queue>
  /** The operations that plan the broker's queues; `undefined` if the adapter has none. */
  readonly operations: Operations | undefined
  /** Returns the capabilities of the last connection; `undefined` before the first connection. */
  readonly known: () => Capabilities.Capabilities | undefined
  /** Runs work with the connected broker. */
  readonly use: <A, E>(
    work: (broker: Broker.Service) => Effect.Effect<A, E, Broker.Broker>
  ) => Effect.Effect<A, Trouble>
  /** Turns every error of an effect, thrown errors included, into a {@link Trouble} without secrets. */
  readonly contain: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, Trouble>
  /** Returns a text without the broker's secrets. */
  readonly mask: (text: string) => string
}

/** Milliseconds between two attempts to connect. */
const pause = 2000

/** Makes a connection, which lasts until the scope closes. It opens on its first use. */
export const make = ({
  layer,
  name,
  operations,
  queues,
  secrets
}: BrokerSource): Effect.Effect<Connection, never, Scope.Scope> =>
  Effect.gen(function* () {
    // Made now: whenever it connects, it closes after the jobs that use it.
    const scope = yield* Scope.fork(yield* Effect.scope)
    const mask = (text: string) => Secrets.strike(text, secrets)
    const troubleOf = (error: unknown) => new Trouble({ broker: name, message: mask(Failure.summarize(error).message) })
    /** Turns a thrown error of an adapter into the error of a broker that does not answer. */
    const contained = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, Trouble> =>
      Effect.catchCause(effect, (cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.fail(troubleOf(Cause.squash(cause)))
      )
    let known: Capabilities.Capabilities | undefined
    let current: Deferred.Deferred<Broker.Service, Trouble> | undefined

    /** Builds the layer in a new scope, which closes at once if the build fails. */
    const build = Effect.gen(function* () {
      const own = yield* Scope.fork(scope)
      const built = yield* Effect.exit(Layer.buildWithScope(layer, own))
      if (Exit.isFailure(built)) yield* Scope.close(own, built)
      const broker = Context.get(yield* built, Broker.Broker)
      for (const queue of queues) KnownQueues.add(broker, queue.name, queue.retry)
      return broker
    })
    const connect = (made: Deferred.Deferred<Broker.Service, Trouble>) =>
      Effect.gen(function* () {
        const exit = yield* Effect.exit(contained(build))
        if (Exit.isSuccess(exit)) known = exit.value.capabilities
        yield* Deferred.done(made, exit)
        if (Exit.isSuccess(exit)) return
        yield* Effect.sleep(pause)
        current = undefined
      })
    const connected = Effect.suspend(() => {
      if (current !== undefined) return Deferred.await(current)
      const made = Deferred.makeUnsafe<Broker.Service, Trouble>()
      current = made
      return Effect.andThen(Effect.forkIn(connect(made), scope), Deferred.await(made))
    })
    return {
      name,
      queues,
      operations,
      mask,
      contain: contained,
      known: () => known,
      use: (work) =>
        Effect.flatMap(connected, (broker) => contained(Effect.provideService(work(broker), Broker.Broker, broker)))
    }
  })
