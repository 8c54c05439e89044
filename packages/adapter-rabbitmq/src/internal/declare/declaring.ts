/** Declares objects in order. If the server refuses one, it tries another way. */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Channel } from "../client.ts"
import type { Live } from "../connect/connection.ts"
import type { LegacyQueues } from "./legacyQueues.ts"
import type { NativeBinding, NativeObject } from "./objects.ts"

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

/** An object that the server can check. */
type Named = Exclude<NativeObject, NativeBinding>

/** The same object, to be checked only. AMQP cannot check a binding, and declaring one needs no permission to configure. */
const passive = <O extends NativeObject>(object: O): O =>
  object._tag === "Binding" || object.assert === "never" ? object : { ...object, assert: "passive" }

/** How objects are declared. */
interface Way {
  /** Whether to skip objects that are known to exist. */
  readonly skips: boolean
  /** Whether it is enough that an object exists, for a user who may not declare it. */
  readonly mayLook: boolean
  /** Whether to check objects first, and to declare only the missing ones. */
  readonly looks: boolean
  /** How often to start again because an object was deleted meanwhile. */
  readonly restarts: number
}

/** How to declare objects at first, and after the server reported that one is missing. */
export const ways = {
  ensure: { skips: true, mayLook: false, looks: false, restarts: 3 },
  renew: { skips: false, mayLook: true, looks: false, restarts: 3 }
} as const satisfies Readonly<Record<string, Way>>

/** Declares objects on a connection. */
export type Declaring = (
  live: Live,
  objects: ReadonlyArray<NativeObject>,
  queue: string | undefined,
  way: Way,
  from?: number
) => Effect.Effect<void, BrokerError.BrokerError>

/**
 * Checks exchanges and queues, and returns the missing ones. If the server refuses a check, the rest counts as present, and a
 * declaration then reports why.
 */
export const missing = (
  objects: ReadonlyArray<NativeObject>,
  onChannel: (run: (channel: Channel) => Promise<void>) => Effect.Effect<void, BrokerError.BrokerError>
): Effect.Effect<ReadonlyArray<Named>> => {
  const asked = objects.filter((object) => object._tag !== "Binding").map(passive)
  const from = (start: number): Effect.Effect<ReadonlyArray<Named>> => {
    let next = start
    const run = async (channel: Channel): Promise<void> => {
      for (; next < asked.length; next++) await declare(channel, asked[next]!)
    }
    return Effect.matchEffect(onChannel(run), {
      onSuccess: () => Effect.succeed([]),
      onFailure: ({ reason }) =>
        reason === "QueueMissing"
          ? Effect.map(from(next + 1), (others) => [asked[next]!, ...others])
          : Effect.succeed([])
    })
  }
  return Effect.suspend(() => from(0))
}

/** All declarations share one channel until the server refuses one, which closes it. */
export const make = (env: {
  readonly formers: LegacyQueues
  readonly isKnown: (live: Live, object: NativeObject) => boolean
  readonly isThere: (live: Live, object: NativeObject) => void
  readonly onLive: (
    live: Live,
    queue: string | undefined,
    run: (channel: Channel) => Promise<void>
  ) => Effect.Effect<void, BrokerError.BrokerError>
}): Declaring => {
  const { formers, isKnown, isThere, onLive } = env

  const declaring: Declaring = (live, objects, queue, way, from = 0) =>
    Effect.suspend(() => {
      let next = from
      const one = (object: NativeObject) => onLive(live, queue, (channel) => declare(channel, object))

      const run = async (channel: Channel): Promise<void> => {
        for (; next < objects.length; next++) {
          const object = objects[next]!
          if (way.skips && isKnown(live, object)) continue
          await declare(channel, way.looks ? passive(object) : formers.own(object))
          isThere(live, object)
        }
      }

      const orOtherwise = (error: BrokerError.BrokerError): Effect.Effect<void, BrokerError.BrokerError> =>
        Effect.gen(function* () {
          const refused = objects[next]
          if (refused === undefined) return yield* error
          if (yield* formers.explain(refused, error, one)) return yield* declaring(live, objects, queue, way, next)
          if (refused._tag === "Binding") {
            // The binding fails if its queue or exchange was deleted meanwhile.
            if (error.reason !== "QueueMissing" || way.restarts === 0) return yield* error
            return yield* declaring(live, objects, queue, { ...way, skips: false, restarts: way.restarts - 1 })
          }
          // Each refusal costs a channel. So this object and all after it are checked first.
          if (way.mayLook && !way.looks && error.reason === "AccessRefused")
            return yield* declaring(live, objects, queue, { ...way, looks: true }, next)
          if (!way.looks || error.reason !== "QueueMissing") return yield* error
          yield* one(refused)
          return yield* declaring(live, objects, queue, way, next + 1)
        })

      return onLive(live, queue, run).pipe(Effect.catch(orOtherwise))
    })
  return declaring
}
