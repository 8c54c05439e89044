/** A broker of one or two daemons, each of which forgets what is in flight or deferred when it is killed. */
import * as Effect from "effect/Effect"
import type { Model } from "../world/Model.ts"
import type { Parcel } from "../world/Store.ts"
import type { World } from "../world/World.ts"
import * as Client from "./Client.ts"
import type { Settings } from "./Protocol.ts"
import * as Server from "./Server.ts"

/** The probability of this setting. */
const chances = { twoDaemons: 0.5, inMemory: 0.5, lowCap: 0.5, lowLimit: 0.3, isExact: 0.3, kill: 0.5, all: 0.3 }

const settingsOf = ({ draw, scenario: { lease } }: World): Settings => ({
  lease,
  // The handlers of a scenario take five leases at most, which leaves a tenth of this for settling.
  longestLease: draw.chance("longest lease", chances.lowLimit) ? lease * 6 : Math.max(900_000, lease * 6),
  cap: draw.chance("cap", chances.lowCap) ? 30_000 : 3_600_000,
  inMemory: draw.chance("memory", chances.inMemory)
})

/** A broker without messages. */
export const make = (world: World): Model => {
  const { draw } = world
  const settings = settingsOf(world)
  const names = draw.chance("daemons", chances.twoDaemons) ? ["nsqd1", "nsqd2"] : ["nsqd1"]
  const servers = names.map((name) => Server.make(world, name, settings))
  const daemons: Client.Daemons = { servers, settings, isExact: draw.chance("exact", chances.isExact) }
  /** Publishes of foreign producers that found no daemon. */
  let waiting: Array<() => void> = []

  const any = (place: string, of: ReadonlyArray<Server.Server>): Server.Server | undefined =>
    of.length < 2 ? of[0] : of[Math.floor(draw.between(place, 0, of.length))]

  const store = (queue: string, parcel: Parcel, stored: () => void): void => {
    const server = any(
      "foreign",
      servers.filter(({ isUp }) => isUp())
    )
    if (server === undefined) return void waiting.push(() => store(queue, parcel, stored))
    server.publish(queue, parcel)
    stored()
  }

  const restart = (server: Server.Server, away: number): void => {
    if (!server.isUp()) return
    server.restart(draw.chance(`${server.name} restarts`, chances.kill) ? "kill" : "orderly", away)
    world.after(away, () => {
      const publishes = waiting
      waiting = []
      for (const publish of publishes) publish()
    })
  }

  return {
    client: (machine) => Effect.sync(() => Client.make(world, machine, daemons)),
    publish: (queue, parcel, stored) => {
      store(queue, parcel, stored)
      // A producer without an answer publishes again.
      if (world.fault("twice", "foreign")) store(queue, parcel, () => {})
    },
    restart: (away) => {
      const one = any("restarts", servers)!
      for (const server of draw.chance("all restart", chances.all) ? servers : [one]) restart(server, away)
    },
    throttle: (millis) => {
      for (const { throttle } of servers) throttle(millis)
    }
  }
}
