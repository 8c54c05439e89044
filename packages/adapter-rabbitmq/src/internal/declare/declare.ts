/**
 * Declares the objects of plans, each once per connection. It uses a separate channel, because a refused declaration closes its
 * channel, with all consumers on it. https://www.rabbitmq.com/docs/channels#error-handling
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

/** The outcome of checking objects that were declared before. */
interface Refreshed {
  /** The exchanges and queues among them that were deleted. */
  readonly missing: ReadonlyArray<Exclude<NativeObject, NativeBinding>>
  /** Why they could not be declared again; `undefined` if they were. */
  readonly error: BrokerError.BrokerError | undefined
}

const unchanged: Refreshed = { missing: [], error: undefined }

/** Declares objects and remembers, until the connection ends, which ones exist. */
export interface Declarer {
  /** Declares the objects that are not known to exist. Errors name `queue`. Default: no queue. */
  readonly ensure: (
    objects: ReadonlyArray<NativeObject>,
    queue?: string
  ) => Effect.Effect<void, BrokerError.BrokerError>
  /**
   * Declares all of these objects again, after the server reported that one of them is missing. If the user may not declare an
   * exchange or a queue, it is enough that it exists. Other objects stay known.
   */
  readonly renew: (objects: ReadonlyArray<NativeObject>, queue: string) => Effect.Effect<void, BrokerError.BrokerError>
  /**
   * Checks the objects that were not declared within the last {@link fresh} milliseconds, and those of `onDemand` that were
   * declared before. Declares the missing ones and reports them.
   */
  readonly refresh: (
    plan: { readonly objects: ReadonlyArray<NativeObject>; readonly onDemand: ReadonlyArray<NativeObject> },
    queue: string
  ) => Effect.Effect<Refreshed>
  /** Whether all of these are known to exist. It knows only arrays that were passed to `ensure`, not equal ones. */
  readonly knows: (objects: ReadonlyArray<NativeObject>) => boolean
  /** A queue that `ensure` found with arguments of former settings; `undefined` for every other queue. */
  readonly former: (queue: string) => NativeQueue | undefined
  /** Runs requests on a new channel. Fails with `Timeout` after three times `requestTimeout`. */
  readonly onChannel: <A>(
    operation: string,
    queue: string,
    run: (channel: Channel) => Promise<A>
  ) => Effect.Effect<A, BrokerError.BrokerError>
  /** The kept channel for requests. The caller alone uses it until the scope closes. */
  readonly keptChannel: (
    operation: string,
    queue: string
  ) => Effect.Effect<Channel, BrokerError.BrokerError, Scope.Scope>
  /** A new channel. It closes with the scope. */
  readonly channel: (operation: string, queue: string) => Effect.Effect<Channel, BrokerError.BrokerError, Scope.Scope>
}

/** Milliseconds in which a declaration is not repeated to find objects that were deleted unnoticed. */
const fresh = 20_000

/**
 * Makes a declarer that knows no object yet.
 *
 * Long, because all members share its memory.
 */
export const make = (connection: Connection, { requestTimeout }: Settings): Effect.Effect<Declarer> =>
  Effect.gen(function* () {
    /** By key, each object as it was declared last. With other arguments, the server must compare it again. */
    const known = new WeakMap<Live, Map<string, NativeObject>>()
    /** Arrays whose objects all exist, by identity, because every message asks. */
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
          // It may be one request for each object, and a new quorum queue takes the server longer.
          request({ operation, queue }, 3 * requestTimeout, () => run(channel))
        )
      )

    const formers = Formers.make()
    const isKnown = (live: Live, object: NativeObject): boolean => {
      // The server does not check it.
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
