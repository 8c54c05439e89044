/**
 * Declares the objects of plans, each once per connection, on a channel that is used for nothing else: a refused
 * declaration closes its channel, with all consumers on it. https://www.rabbitmq.com/docs/channels#error-handling
 */
import type { BrokerError } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Channel } from "../client.ts"
import type { Connection, Live } from "../connect/connection.ts"
import * as Declaring from "./declaring.ts"
import * as Formers from "./legacyQueues.ts"
import { keyOf, type NativeBinding, type NativeObject, type NativeQueue } from "./objects.ts"
import * as KeptChannel from "../connect/keptChannel.ts"
import { request } from "../connect/request.ts"

/** The outcome of a look after objects that had been declared before. */
interface Refreshed {
  /** The exchanges and queues among them that were deleted. */
  readonly missing: ReadonlyArray<Exclude<NativeObject, NativeBinding>>
  /** Why they could not be declared again; `undefined` where they were. */
  readonly error: BrokerError.BrokerError | undefined
}

const unchanged: Refreshed = { missing: [], error: undefined }

/** Declares objects, and remembers which exist for as long as the connection lives. */
export interface Declarer {
  /** Declares those that are not known to exist. `queue` is named in errors. Default: none, they belong to no queue. */
  readonly ensure: (
    objects: ReadonlyArray<NativeObject>,
    queue?: string
  ) => Effect.Effect<void, BrokerError.BrokerError>
  /**
   * Declares all of these, also those that are known to exist, because the server has denied that one does. An exchange or a
   * queue that may not be declared will do if it is there. What is known of others stays known: they do not suffer.
   */
  readonly renew: (objects: ReadonlyArray<NativeObject>, queue: string) => Effect.Effect<void, BrokerError.BrokerError>
  /**
   * The same for those that nobody has declared within the last {@link fresh} milliseconds, and for those of `onDemand` that
   * somebody has declared before. It looks for them first, and reports what was missing.
   */
  readonly refresh: (
    plan: { readonly objects: ReadonlyArray<NativeObject>; readonly onDemand: ReadonlyArray<NativeObject> },
    queue: string
  ) => Effect.Effect<Refreshed>
  /** Whether all of these are known to exist. Only for lists that `ensure` has seen: the same array, not an equal one. */
  readonly knows: (objects: ReadonlyArray<NativeObject>) => boolean
  /** A queue that has arguments of former settings, as it was found by `ensure`; `undefined` for every other one. */
  readonly former: (queue: string) => NativeQueue | undefined
  /** Runs requests on a channel of their own. Fails with `Timeout` after three times `requestTimeout`. */
  readonly onChannel: <A>(
    operation: string,
    queue: string,
    run: (channel: Channel) => Promise<A>
  ) => Effect.Effect<A, BrokerError.BrokerError>
  /** The channel for requests, while nobody else uses it, until the scope closes. */
  readonly keptChannel: (
    operation: string,
    queue: string
  ) => Effect.Effect<Channel, BrokerError.BrokerError, Scope.Scope>
  /** A channel that nobody else uses; it closes with the scope. */
  readonly channel: (operation: string, queue: string) => Effect.Effect<Channel, BrokerError.BrokerError, Scope.Scope>
}

/** Milliseconds in which a declaration is not repeated for the sake of those who have deleted something unnoticed. */
const fresh = 20_000

/**
 * Knows of no object, at first.
 *
 * Long, because everything that it knows is shared by all that it does.
 */
export const make = (connection: Connection, { requestTimeout }: Settings): Effect.Effect<Declarer> =>
  Effect.gen(function* () {
    /** By the key of an object, how it was declared last: with other arguments, the server is to compare it. */
    const known = new WeakMap<Live, Map<string, NativeObject>>()
    /** Lists of which everything is known to exist, by their identity: every message asks. */
    const complete = new WeakMap<ReadonlyArray<NativeObject>, Live>()
    const lock = yield* Semaphore.make(1)
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    /** When each object was declared last, in monotonic milliseconds. */
    const declaredAt = new Map<string, number>()

    const knownOn = (live: Live): Map<string, NativeObject> => {
      const found = known.get(live) ?? new Map<string, NativeObject>()
      known.set(live, found)
      return found
    }

    const kept = KeptChannel.make(requestTimeout)

    const onLive = <A>(
      live: Live,
      operation: string,
      queue: string | undefined,
      run: (channel: Channel) => Promise<A>
    ): Effect.Effect<A, BrokerError.BrokerError> =>
      Effect.scoped(
        Effect.flatMap(kept(live, { operation, queue }), (channel) =>
          // It may be a request for each object, and the server needs more time for a new quorum queue.
          request({ operation, queue }, 3 * requestTimeout, () => run(channel))
        )
      )

    const formers = Formers.make()
    const isKnown = (live: Live, object: NativeObject): boolean => {
      // The server is not asked for it.
      if (object.assert === "never") return true
      const last = knownOn(live).get(keyOf(object))
      return last === object || (last !== undefined && JSON.stringify(last) === JSON.stringify(object))
    }
    const declaring = Declaring.make({
      formers,
      isKnown,
      isThere: (live, object) => {
        const key = keyOf(object)
        knownOn(live).set(key, object)
        declaredAt.set(key, now())
      },
      onLive: (live, queue, run) => onLive(live, "declare", queue, run)
    })

    const renew: Declarer["renew"] = (objects, queue) =>
      Effect.flatMap(connection.within({ operation: "declare", queue }), (live) =>
        lock.withPermits(1)(declaring(live, objects, queue, Declaring.ways.renew))
      )

    const onChannel: Declarer["onChannel"] = (operation, queue, run) =>
      Effect.flatMap(connection.within({ operation, queue }), (live) => onLive(live, operation, queue, run))

    return {
      onChannel,
      channel: (operation, queue) =>
        Effect.flatMap(connection.within({ operation, queue }), (live) =>
          KeptChannel.own(live, { operation, queue }, requestTimeout)
        ),
      keptChannel: (operation, queue) =>
        Effect.flatMap(connection.within({ operation, queue }), (live) => kept(live, { operation, queue })),
      former: formers.get,
      renew,
      refresh: ({ objects, onDemand }, queue) => {
        const old = now() - fresh
        const demanded = onDemand.filter((object) => declaredAt.has(keyOf(object)))
        const due = [...objects, ...demanded].filter(
          (object) => object.assert !== "never" && (declaredAt.get(keyOf(object)) ?? Number.NEGATIVE_INFINITY) < old
        )
        if (due.length === 0) return Effect.succeed(unchanged)
        return Effect.gen(function* () {
          const missing = yield* Declaring.missing(due, (run) => onChannel("declare", queue, run))
          const error = yield* Effect.match(renew(due, queue), {
            onFailure: (cause) => cause,
            onSuccess: () => undefined
          })
          return { missing, error }
        })
      },
      knows: (objects) => {
        const live = connection.current()
        return live !== undefined && complete.get(objects) === live
      },
      ensure: (objects, queue) =>
        Effect.gen(function* () {
          const live = yield* connection.within({ operation: "declare", queue })
          const isComplete = () => objects.every((object) => isKnown(live, object))
          if (isComplete()) return void complete.set(objects, live)
          yield* lock.withPermits(1)(
            Effect.suspend(() =>
              // Another fiber may have declared them while this one waited.
              isComplete() ? Effect.void : declaring(live, objects, queue, Declaring.ways.ensure)
            )
          )
          if (isComplete()) complete.set(objects, live)
        })
    }
  })
