/** Verdicts of the world on publications: refusals of single messages, and a server that is too busy for one. */
import type { Refusal as Reason, Scenario } from "../Scenario.ts"
import { Refusal } from "../servers/rabbitmq/Refusal.ts"
import type { Publication } from "../servers/rabbitmq/Message.ts"
import type { Verdict } from "../servers/rabbitmq/Session.ts"
import * as Parcel from "../world/Parcel.ts"
import type { World } from "../world/World.ts"
import * as Parcels from "./Parcels.ts"

const verdictOf = (reason: Reason["reason"], { content, exchange }: Publication): Verdict => {
  switch (reason) {
    case "BodyTooLarge":
      return new Refusal(406, `message size ${content.length} is larger than configured max size ${content.length - 1}`)
    case "Unroutable":
      return "unrouted"
    case "AccessRefused":
      return new Refusal(403, `write access to exchange '${exchange}' in vhost '/' refused for user 'guest'`)
  }
}

const refusalFor = ({ refusals }: Scenario, key: number): Reason | undefined =>
  refusals.find((each) => each.key === key)

/** Makes the driver's and the server's verdicts. `homeOf` returns the queue that a publication is for. */
export const make = (world: World, homeOf: (publication: Publication) => string) => {
  const { fault, scenario } = world
  /** The refusal of a publication; `undefined` for nearly all. */
  const refused = (publication: Publication): Reason | undefined => {
    if (scenario.refusals.length === 0) return undefined
    const parcel = Parcels.from(publication)
    const found = Parcel.refusal(world, homeOf(publication), parcel)
    return found && refusalFor(scenario, Parcel.keyOf(parcel))
  }
  return {
    /** Headers that are too large for the driver. A copy with fewer of them is not. */
    atDriver: (publication: Publication): void => {
      if ((refused(publication)?.until ?? 5) < 5)
        throw new RangeError("Encoded field table (headers or arguments) exceeds the 65536 byte encoding buffer")
    },
    atServer: (process: string | undefined, publication: Publication): Verdict | undefined => {
      // A producer outside repeats until its message is stored.
      if (process === undefined) return undefined
      const reason = refused(publication)?.reason
      // A route that refuses one message refuses all, until operators repair it.
      const isRepaired = reason !== "BodyTooLarge" && world.isCalm()
      if (reason !== undefined && !isRepaired) return verdictOf(reason, publication)
      return fault("busy", `${process} publish`) ? "rejected" : undefined
    }
  }
}
