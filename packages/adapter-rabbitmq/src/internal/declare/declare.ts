/**
 * Declares the objects of plans, each once per connection, on a channel that is used for nothing else: a refused
 * declaration closes its channel, with all consumers on it. https://www.rabbitmq.com/docs/channels#error-handling
 */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Channel } from "../client.ts"
import type { Connection, Live } from "../connect/connection.ts"
import { keyOf, type NativeObject } from "./objects.ts"
import { request } from "../connect/request.ts"

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
  /** The same for those that nobody has declared within the last {@link fresh} milliseconds. */
  readonly refresh: Declarer["renew"]
  /** Whether all of these are known to exist. Only for lists that `ensure` has seen: the same array, not an equal one. */
  readonly knows: (objects: ReadonlyArray<NativeObject>) => boolean
  /** Runs requests on a channel of their own. Fails with `Timeout` after three times `requestTimeout`. */
  readonly onChannel: <A>(
    operation: string,
    queue: string,
    run: (channel: Channel) => Promise<A>
  ) => Effect.Effect<A, BrokerError.BrokerError>
}

/** Milliseconds in which a declaration is not repeated for the sake of those who have deleted something unnoticed. */
const fresh = 20_000

/** Declares one object. If it exists with the same arguments, nothing happens; with others, the server refuses. */
export const declare = async (channel: Channel, object: NativeObject): Promise<void> => {
  switch (object._tag) {
    case "Exchange":
      if (object.assert === "declare") {
        await channel.assertExchange(object.name, object.type, { durable: true, arguments: object.arguments })
      } else if (object.assert === "passive") await channel.checkExchange(object.name)
      return
    case "Queue":
      if (object.assert === "declare") {
        const { arguments: args, exclusive = false } = object
        await channel.assertQueue(object.name, { durable: true, exclusive, arguments: args })
      } else if (object.assert === "passive") await channel.checkQueue(object.name)
      return
    case "Binding":
      if (object.assert !== "declare") return
      await channel.bindQueue(object.queue, object.source, object.key, object.arguments)
  }
}

/** The same object, only to be looked for. A binding cannot be looked for, and needs no permission to configure. */
const passive = (object: NativeObject): NativeObject =>
  object._tag === "Binding" || object.assert === "never" ? object : { ...object, assert: "passive" }

/**
 * Declares one after the other, on one channel until an object is refused. From there on, objects are looked for, and only
 * those that are missing are declared: a user who may not declare would need channels for each of them.
 */
const again = (
  onLive: (
    live: Live,
    queue: string,
    run: (channel: Channel) => Promise<void>
  ) => Effect.Effect<void, BrokerError.BrokerError>,
  isThere: (live: Live, object: NativeObject) => void
) => {
  const declareAgain = (
    live: Live,
    objects: ReadonlyArray<NativeObject>,
    queue: string,
    looks = false
  ): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.suspend(() => {
      let next = 0
      const run = async (channel: Channel) => {
        for (; next < objects.length; next++) {
          const object = objects[next]!
          await declare(channel, looks ? passive(object) : object)
          isThere(live, object)
        }
      }
      const orOtherwise = (error: BrokerError.BrokerError) => {
        const refused = objects[next]
        if (refused === undefined || refused._tag === "Binding") return Effect.fail(error)
        if (!looks && error.reason === "AccessRefused") return declareAgain(live, objects.slice(next), queue, true)
        if (!looks || error.reason !== "QueueMissing") return Effect.fail(error)
        const missing = onLive(live, queue, (channel) => declare(channel, refused))
        return Effect.andThen(missing, declareAgain(live, objects.slice(next + 1), queue, true))
      }
      return onLive(live, queue, run).pipe(Effect.catch(orOtherwise))
    })
  return declareAgain
}

/** Knows of no object, at first. */
export const make = (connection: Connection, { requestTimeout }: Settings): Effect.Effect<Declarer> =>
  Effect.gen(function* () {
    /** By the key of an object, how it was declared last: with other arguments, the server is to compare it. */
    const known = new WeakMap<Live, Map<string, string>>()
    /** Lists of which everything is known to exist, by their identity: every message asks. */
    const complete = new WeakMap<ReadonlyArray<NativeObject>, Live>()
    const lock = yield* Semaphore.make(1)
    const clock = yield* Clock.Clock
    /** When each object was declared last, in milliseconds since the epoch. */
    const declaredAt = new Map<string, number>()

    const knownOn = (live: Live): Map<string, string> => {
      const found = known.get(live) ?? new Map<string, string>()
      known.set(live, found)
      return found
    }

    const onLive = <A>(
      live: Live,
      operation: string,
      queue: string | undefined,
      run: (channel: Channel) => Promise<A>
    ): Effect.Effect<A, BrokerError.BrokerError> =>
      Effect.acquireUseRelease(
        request({ operation, queue }, requestTimeout, live.driver.channel),
        // It may be a request for each object, and the server needs more time for a new quorum queue.
        (channel) => request({ operation, queue }, 3 * requestTimeout, () => run(channel)),
        (channel) => Effect.ignore(request({ operation, queue }, requestTimeout, () => channel.close()))
      )

    const declareAgain = again(
      (live, queue, run) => onLive(live, "declare", queue, run),
      (live, object) => {
        const key = keyOf(object)
        knownOn(live).set(key, JSON.stringify(object))
        declaredAt.set(key, clock.currentTimeMillisUnsafe())
      }
    )

    const renew: Declarer["renew"] = (objects, queue) =>
      Effect.flatMap(connection.within({ operation: "declare", queue }), (live) =>
        lock.withPermits(1)(declareAgain(live, objects, queue))
      )

    return {
      onChannel: (operation, queue, run) =>
        Effect.flatMap(connection.within({ operation, queue }), (live) => onLive(live, operation, queue, run)),
      renew,
      refresh: (objects, queue) => {
        const old = clock.currentTimeMillisUnsafe() - fresh
        const due = objects.filter((object) => (declaredAt.get(keyOf(object)) ?? 0) < old)
        return due.length === 0 ? Effect.void : renew(due, queue)
      },
      knows: (objects) => {
        const live = connection.current()
        return live !== undefined && complete.get(objects) === live
      },
      ensure: (objects, queue) =>
        Effect.gen(function* () {
          const live = yield* connection.within({ operation: "declare", queue })
          const done = knownOn(live)
          const missing = () => objects.filter((object) => done.get(keyOf(object)) !== JSON.stringify(object))
          if (missing().length === 0) return void complete.set(objects, live)
          yield* lock.withPermits(1)(
            Effect.suspend(() =>
              // Another fiber may have declared them while this one waited.
              missing().length === 0
                ? Effect.void
                : onLive(live, "declare", queue, async (channel) => {
                    for (const object of missing()) {
                      await declare(channel, object)
                      done.set(keyOf(object), JSON.stringify(object))
                    }
                  })
            )
          )
          if (missing().length === 0) complete.set(objects, live)
        })
    }
  })
