/** Connections to brokers: each is made when it is first needed, kept, and made again when that has failed. */
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

/** The error of a broker that cannot be asked. Its message has no secrets. */
export class Trouble extends Data.TaggedError("Trouble")<{ readonly broker: string; readonly message: string }> {}

/** A broker, connected or not. */
export interface Connection {
  readonly name: string
  readonly queues: ReadonlyArray<Queue>
  /** Plans its queues, where somebody can. */
  readonly operations: Operations | undefined
  /** Its capabilities as they were when it was last connected; `undefined` before that. */
  readonly known: () => Capabilities.Capabilities | undefined
  /** Does something with the broker, once it is connected. */
  readonly use: <A, E>(
    work: (broker: Broker.Service) => Effect.Effect<A, E, Broker.Broker>
  ) => Effect.Effect<A, Trouble>
  /** An effect whose errors, also those that are thrown, are troubles without secrets. */
  readonly contain: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, Trouble>
  /** A text without the broker's secrets. */
  readonly mask: (text: string) => string
}

/** Milliseconds between two attempts to connect. */
const pause = 2000

/** Makes a connection, which lasts until the scope closes. Nothing is connected before it is used. */
export const make = ({
  layer,
  name,
  operations,
  queues,
  secrets
}: BrokerSource): Effect.Effect<Connection, never, Scope.Scope> =>
  Effect.gen(function* () {
    // Made now, so that it closes behind the jobs that use it, whenever it is connected.
    const scope = yield* Scope.fork(yield* Effect.scope)
    const mask = (text: string) => Secrets.strike(text, secrets)
    const troubleOf = (error: unknown) => new Trouble({ broker: name, message: mask(Failure.summarize(error).message) })
    /** An adapter that throws is a broker that cannot be asked. */
    const contained = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, Trouble> =>
      Effect.catchCause(effect, (cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.fail(troubleOf(Cause.squash(cause)))
      )
    let known: Capabilities.Capabilities | undefined
    let current: Deferred.Deferred<Broker.Service, Trouble> | undefined

    /** Builds the layer in a scope of its own, which is closed at once when that fails. */
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
