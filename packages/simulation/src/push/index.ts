/** A broker that pushes. */
import * as Effect from "effect/Effect"
import type { Model } from "../world/Model.ts"
import type { World } from "../world/World.ts"
import * as Client from "./Client.ts"
import * as Server from "./Server.ts"

/** A broker that pushes, without messages. */
export const make = (world: World): Model => {
  const server = Server.make(world)
  return {
    client: (machine) => Effect.sync(() => Client.make(world, machine, server)),
    publish: server.publish,
    restart: server.restart,
    throttle: server.throttle
  }
}
