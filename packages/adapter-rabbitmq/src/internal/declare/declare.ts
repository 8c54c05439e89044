/**
 * Declares the objects of plans, each once per connection, on a channel that is used for nothing else: a refused
 * declaration closes its channel, with all consumers on it. https://www.rabbitmq.com/docs/channels#error-handling
 */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Channel } from "../client.ts"
import type { Connection, Live } from "../connect/connection.ts"
import * as Former from "./former.ts"
import { keyOf, type NativeObject, type NativeQueue } from "./objects.ts"
import { request } from "../connect/request.ts"

/** Declares objects, and remembers which exist for as long as the connection lives. */
export interface Declarer {
  /** Declares those that are not known to exist. `queue` is named in errors. Default: none, they belong to no queue. */
  readonly ensure: (
    objects: ReadonlyArray<NativeObject>,
    queue?: string
  ) => Effect.Effect<void, BrokerError.BrokerError>
  /** Forgets these, whatever their arguments, because the server has denied that they exist. */
  readonly forget: (objects: ReadonlyArray<NativeObject>) => void
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
}

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

/** How often a declaration begins again because somebody has deleted an object in the middle of it. */
const maxRestarts = 3

/** More arguments than former settings explain. */
const maxQuestions = 6

/**
 * Knows of no object, at first.
 *
 * Long, because all of it is about the same memories of the server.
 */
export const make = (connection: Connection, { requestTimeout }: Settings): Effect.Effect<Declarer> =>
  Effect.gen(function* () {
    /** By the key of an object, how it was declared last: with other arguments, the server is to compare it. */
    const known = new WeakMap<Live, Map<string, string>>()
    /** Lists of which everything is known to exist, by their identity: every message asks. */
    let complete = new WeakMap<ReadonlyArray<NativeObject>, Live>()
    const lock = yield* Semaphore.make(1)

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

    /** Queues that were made under former settings, by name. */
    const former = new Map<string, NativeQueue>()

    /** Finds the arguments of a queue of ours that is refused; `undefined` where former settings do not explain them. */
    const findFormer = (live: Live, planned: NativeQueue, first: BrokerError.BrokerError) =>
      Effect.gen(function* () {
        let refusal: string = first.detail
        let hasOther = false
        for (let queue: NativeQueue | undefined = planned, asked = 0; asked < maxQuestions; asked++) {
          const before: NativeQueue = queue
          queue = Former.next(before, refusal, hasOther)
          if (queue === undefined) return undefined
          hasOther ||= queue.arguments["x-queue-type"] !== before.arguments["x-queue-type"]
          const candidate = queue
          const made = yield* Effect.result(
            onLive(live, "declare", planned.name, (channel) => declare(channel, candidate))
          )
          if (Result.isSuccess(made)) return candidate
          if (made.failure.reason !== "QueueMismatch") return yield* made.failure
          refusal = made.failure.detail
        }
        return undefined
      })

    /**
     * Declares what is missing. A queue of former settings is declared with its own arguments. An object that is gone again
     * meanwhile is found by the binding that needs it: then all are declared again.
     */
    const declareAll = (live: Live, queue: string | undefined, objects: ReadonlyArray<NativeObject>) =>
      Effect.gen(function* () {
        const done = knownOn(live)
        let restarts = maxRestarts
        while (true) {
          let last: NativeObject | undefined
          const declared = yield* Effect.result(
            onLive(live, "declare", queue, async (channel) => {
              for (const object of objects) {
                if (done.get(keyOf(object)) === JSON.stringify(object)) continue
                last = object
                await declare(channel, (object._tag === "Queue" ? former.get(object.name) : undefined) ?? object)
                done.set(keyOf(object), JSON.stringify(object))
              }
            })
          )
          if (Result.isSuccess(declared)) return
          const { failure } = declared
          const refused: NativeObject | undefined = last
          if (failure.reason === "QueueMismatch" && refused?._tag === "Queue" && Former.isHome(refused)) {
            // It may have been made anew.
            if (former.delete(refused.name)) continue
            const found = yield* findFormer(live, refused, failure)
            if (found === undefined) return yield* failure
            former.set(refused.name, found)
          } else if (failure.reason === "QueueMissing" && refused?._tag === "Binding" && restarts-- > 0)
            for (const object of objects) done.delete(keyOf(object))
          else return yield* failure
        }
      })

    return {
      onChannel: (operation, queue, run) =>
        Effect.flatMap(connection.within({ operation, queue }), (live) => onLive(live, operation, queue, run)),
      former: (queue) => former.get(queue),
      forget: (objects) => {
        const live = connection.current()
        if (live === undefined) return
        for (const object of objects) knownOn(live).delete(keyOf(object))
        complete = new WeakMap()
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
              missing().length === 0 ? Effect.void : declareAll(live, queue, objects)
            )
          )
          if (missing().length === 0) complete.set(objects, live)
        })
    }
  })
