/** A broker with leases. */
import * as Effect from "effect/Effect"
import * as Calls from "../world/Calls.ts"
import type { Model } from "../world/Model.ts"
import type { World } from "../world/World.ts"
import * as Client from "./Client.ts"
import * as Server from "./Server.ts"

/** A broker with leases, without messages. */
export const make = (world: World): Model => {
  const server = Server.make(world)
  const calls = Calls.make(world)
  return {
    client: (machine) => Effect.sync(() => Client.make(world, machine, calls, server)),
    publish: server.publish,
    restart: (away) => {
      calls.restart(away)
      server.dropPolls()
    },
    throttle: calls.throttle,
    underWay: calls.underWay
  }
}
