/** Declares objects one after the other, and goes on in another way where the server refuses one. */
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

/** An object that can be looked for. */
type Named = Exclude<NativeObject, NativeBinding>

/** The same object, only to be looked for. A binding cannot be looked for, and needs no permission to configure. */
const passive = <O extends NativeObject>(object: O): O =>
  object._tag === "Binding" || object.assert === "never" ? object : { ...object, assert: "passive" }

/** How objects are declared. */
interface Way {
  /** Whether those that are known to exist are left out. */
  readonly skips: boolean
  /** Whether a user who may not declare an object will do where it is there. */
  readonly mayLook: boolean
  /** Whether objects are looked for, and only those that are missing are declared. */
  readonly looks: boolean
  /** How often all are declared anew, because somebody has deleted one in the middle of it. */
  readonly restarts: number
}

/** The first way for objects that nobody has denied, and for those of which the server has denied one. */
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
 * Looks for exchanges and queues, and returns those that are missing. Where the server refuses the question, the rest counts as
 * present: a declaration then reports why.
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

/** They share one channel until one is refused, which closes it. */
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
            // What is gone again meanwhile is found by the binding that needs it.
            if (error.reason !== "QueueMissing" || way.restarts === 0) return yield* error
            return yield* declaring(live, objects, queue, { ...way, skips: false, restarts: way.restarts - 1 })
          }
          // A user who may not declare would need a channel for each object. It is looked for, and so are those behind it.
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
