/**
 * Declares what plans ask for, each once per connection, on a channel that is thrown away: a refused declaration closes
 * its channel, and must not take anybody's consumers along.
 */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Channel } from "../client.ts"
import type { Link, Live } from "../connect/connection.ts"
import * as Objects from "./objects.ts"
import { request } from "../connect/request.ts"

export interface Declarer {
  /** Makes sure that these exist. */
  readonly ensure: (
    objects: ReadonlyArray<Objects.Object>,
    queue: string
  ) => Effect.Effect<void, BrokerError.BrokerError>
  /** Forgets that these exist, because the server said so. */
  readonly doubt: (objects: ReadonlyArray<Objects.Object>) => void
  /** True when these, in this very list, are known to exist. */
  readonly knows: (objects: ReadonlyArray<Objects.Object>) => boolean
  /** Runs requests on a channel of their own. */
  readonly onChannel: <A>(
    operation: string,
    queue: string,
    run: (channel: Channel) => Promise<A>
  ) => Effect.Effect<A, BrokerError.BrokerError>
}

/** Declares one object; what exists with the same arguments stays as it is. */
export const declare = async (channel: Channel, object: Objects.Object): Promise<void> => {
  switch (object._tag) {
    case "Exchange":
      if (object.assert === "declare") {
        await channel.assertExchange(object.name, object.type, { durable: true, arguments: object.arguments })
      } else if (object.assert === "passive") await channel.checkExchange(object.name)
      return
    case "Queue":
      if (object.assert === "declare") {
        await channel.assertQueue(object.name, { durable: true, arguments: object.arguments })
      } else if (object.assert === "passive") await channel.checkQueue(object.name)
      return
    case "Binding":
      await channel.bindQueue(object.queue, object.source, object.key, object.arguments)
  }
}

export const make = (link: Link, settings: Settings): Effect.Effect<Declarer> =>
  Effect.gen(function* () {
    const known = new WeakMap<Live, Set<string>>()
    /** Lists of which everything is known, by their identity: the quick answer for every message. */
    let complete = new WeakMap<ReadonlyArray<Objects.Object>, Live>()
    const one = yield* Semaphore.make(1)

    const knownOn = (live: Live): Set<string> => {
      const found = known.get(live) ?? new Set<string>()
      known.set(live, found)
      return found
    }

    const onLive = <A>(
      live: Live,
      operation: string,
      queue: string,
      run: (channel: Channel) => Promise<A>
    ): Effect.Effect<A, BrokerError.BrokerError> =>
      Effect.acquireUseRelease(
        request({ operation, queue }, settings.requestTimeout, () => live.connection.channel()),
        // As many requests as there are objects may run, and a quorum queue that is new takes its time.
        (channel) => request({ operation, queue }, 3 * settings.requestTimeout, () => run(channel)),
        (channel) => Effect.ignore(request({ operation, queue }, settings.requestTimeout, () => channel.close()))
      )

    return {
      onChannel: (operation, queue, run) =>
        Effect.flatMap(link.within({ operation, queue }, settings.requestTimeout), (live) =>
          onLive(live, operation, queue, run)
        ),
      doubt: (objects) => {
        const live = link.current()
        if (live === undefined) return
        for (const object of objects) knownOn(live).delete(Objects.keyOf(object))
        complete = new WeakMap()
      },
      knows: (objects) => {
        const live = link.current()
        return live !== undefined && complete.get(objects) === live
      },
      ensure: (objects, queue) =>
        Effect.gen(function* () {
          const live = yield* link.within({ operation: "declare", queue }, settings.requestTimeout)
          const done = knownOn(live)
          const missing = () => objects.filter((object) => !done.has(Objects.keyOf(object)))
          if (missing().length === 0) return void complete.set(objects, live)
          yield* one.withPermits(1)(
            Effect.suspend(() =>
              // Somebody else may have declared them while this waited.
              missing().length === 0
                ? Effect.void
                : onLive(live, "declare", queue, async (channel) => {
                    for (const object of missing()) {
                      await declare(channel, object)
                      done.add(Objects.keyOf(object))
                    }
                  })
            )
          )
          if (missing().length === 0) complete.set(objects, live)
        })
    }
  })
