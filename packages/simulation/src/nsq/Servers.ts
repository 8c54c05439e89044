/** One or two simulated nsqd with a simulated nsqlookupd, as a world has them. */
import type { Refusal } from "../Scenario.ts"
import type { Flags } from "../servers/nsq/Flags.ts"
import * as Lookupd from "../servers/nsq/Lookupd.ts"
import * as Network from "../servers/nsq/Network.ts"
import * as Nsqd from "../servers/nsq/Nsqd.ts"
import * as Host from "../world/Host.ts"
import * as Parcel from "../world/Parcel.ts"
import type { World } from "../world/World.ts"
import * as Conditions from "./Conditions.ts"
import * as Names from "./Names.ts"
import * as Parcels from "./Parcels.ts"
import type { Purposes } from "./Purposes.ts"
import * as Witness from "./Witness.ts"

/** The probability of this setting. */
const chances = { inMemory: 0.5, lowCap: 0.5, lowLimit: 0.3 }

/** The HTTP interface of nsqlookupd. */
export const lookupUrl = "http://nsqlookupd:4161"

/** Another host name of the first nsqd. */
export const alias = "alias"

const flagsOf = ({ draw, scenario: { lease } }: World): Partial<Flags> => ({
  // The handlers of a scenario take five leases at most, which leaves a tenth of this for settling.
  maxMsgTimeout: draw.chance("longest lease", chances.lowLimit) ? lease * 6 : Math.max(900_000, lease * 6),
  maxReqTimeout: draw.chance("cap", chances.lowCap) ? 30_000 : 3_600_000,
  // Without a sync at each message, a killed nsqd delivers some of them twice under one id, for which there are no laws.
  syncEvery: 1,
  ...(draw.chance("memory", chances.inMemory) ? {} : { memQueueSize: 0 })
})

/** The texts with which nsqd refuses a message. A limit in them must not be lower than the real one, which clients learn. */
const texts: Readonly<Record<Refusal["reason"], (command: string) => string>> = {
  BodyTooLarge: (command) => `E_BAD_MESSAGE ${command} message too big 1048577 > 1048576`,
  Unroutable: (command) => `E_BAD_TOPIC ${command} topic name is not valid`,
  AccessRefused: (command) => `E_UNAUTHORIZED AUTH failed for ${command}`
}

/** Starts the servers of a world. `waits` is called when a message may wait for a client. */
export const make = (world: World, names: ReadonlyArray<string>, purposes: Purposes, waits: () => void) => {
  const { draw, fault } = world
  const host = Host.ofServer(world)
  const witness = Witness.make(world, host.now, purposes, waits)
  const network = Network.make(host, Conditions.of(world))
  const flags = flagsOf(world)
  const all = names.map((name) => {
    const nsqd = Nsqd.make(
      { ...host, random: (place) => draw.unit(`${name} ${place}`) },
      {
        name,
        flags,
        numbers: { copy: world.number, delivery: world.number },
        report: witness.report,
        lookup: (topic) => lookupd.channels(topic),
        refuses: (command, topic, body) => {
          const reason = Parcel.refusal(world, Names.inWorld(topic), Parcels.read(body))
          // Only its size concerns one message of several: they have one topic.
          return reason && texts[command === "MPUB" ? "BodyTooLarge" : reason](command)
        },
        lasts: (lease) => (fault("echo", `${name} clock`) ? draw.between(`${name} step`, 0, lease) : lease)
      }
    )
    const connect: Nsqd.Nsqd["connect"] = (output) => {
      const session = nsqd.connect(output)
      return { ...session, execute: (command) => witness.during(command, () => session.execute(command)) }
    }
    for (const at of name === names[0] ? [name, alias] : [name])
      network.add({ ...nsqd, connect }, `${at}:4150`, `http://${at}:4151`)
    return nsqd
  })
  const lookupd: Lookupd.Lookupd = Lookupd.make(
    host,
    all.map((nsqd) => ({ nsqd, host: nsqd.name, port: 4150, httpPort: 4151 }))
  )
  network.addLookupd(lookupd, lookupUrl)
  return { all, lookupd, network }
}
