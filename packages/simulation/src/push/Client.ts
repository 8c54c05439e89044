/** The client of a broker that pushes: one connection for publishes, and one for each subscription. */
import { Connection, Delay, type BrokerError, type Capabilities } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type { Machine } from "../world/Machine.ts"
import * as Parcels from "../world/Parcels.ts"
import type { Client } from "../world/Model.ts"
import type { World } from "../world/World.ts"
import { type Publish, subscribing } from "./Consumer.ts"
import * as Line from "./Line.ts"
import type { Server, Up } from "./Server.ts"

const capabilities: Capabilities.Capabilities = {
  broker: "push",
  retryDelay: { native: Delay.max, beyond: undefined },
  sendDelay: { native: Delay.max, beyond: undefined },
  delayResolution: 1,
  durableDelays: true,
  durableMessages: true,
  uncountedRelease: true,
  headers: true,
  historyOnRetry: true,
  maxBodySize: 100_000,
  connectionBound: true,
  lease: undefined,
  ordered: true,
  settleBatch: 1,
  settleWait: 0,
  counts: { ready: true, inFlight: false, delayed: true },
  exactCounts: true,
  uncountedBrowse: true
}

/** The client of one process. */
export const make = (world: World, machine: Machine, server: Server): Client => {
  const tracker = Connection.track("up", machine.wallClock)
  const publisher = Line.open({
    machine,
    server,
    place: `${machine.name} publish`,
    onUp: () => tracker.set("up"),
    onDown: () => tracker.set("down")
  })
  const publish: Publish = (outgoing, of, then) => {
    const { delay, queue } = outgoing
    const parcel = Parcels.fromOutgoing(world, outgoing)
    publisher.ask("publish", (seq) => ({ _tag: "Publish", seq, queue, parcel, delay, of }), then)
  }
  const ask = <A>(operation: string, frame: (seq: number) => Up): Effect.Effect<A, BrokerError.BrokerError> =>
    Effect.callback((resume) =>
      publisher.ask(operation, frame, (result) => {
        resume(result as Exit.Exit<A, BrokerError.BrokerError>) // the server answers the request
      })
    )

  return {
    capabilities,
    connection: tracker.current,
    publish: (messages) =>
      Effect.forEach(
        messages,
        (message) => Effect.callback<unknown, BrokerError.BrokerError>((resume) => publish(message, undefined, resume)),
        { concurrency: "unbounded", discard: true }
      ),
    subscribe: subscribing(machine, server, publish, world.scenario.isNameless === true),
    admin: {
      counts: (queue) =>
        Effect.map(
          ask<{ ready: number; delayed: number }>("counts", (seq) => ({ _tag: "Counts", seq, queue })),
          (counts) => ({ ...counts, inFlight: undefined })
        ),
      purge: (queue) => ask("purge", (seq) => ({ _tag: "Purge", seq, queue }))
    }
  }
}
