/** The adapter for NSQ on one or two simulated nsqd, which it knows by their addresses or from a simulated nsqlookupd. */
import { NsqBroker, type NsqOptions } from "@requeue/adapter-nsq"
import { Driver } from "@requeue/adapter-nsq/driver"
import type { Delivery } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Refusal } from "../Scenario.ts"
import * as NsqDriver from "../servers/nsq/Driver.ts"
import type { Flags } from "../servers/nsq/Flags.ts"
import * as Lookupd from "../servers/nsq/Lookupd.ts"
import * as Network from "../servers/nsq/Network.ts"
import * as Nsqd from "../servers/nsq/Nsqd.ts"
import type { Topic } from "../servers/nsq/Topic.ts"
import * as Host from "../world/Host.ts"
import type { Machine } from "../world/Machine.ts"
import type { Model } from "../world/Model.ts"
import * as Store from "../world/Store.ts"
import type { World } from "../world/World.ts"
import * as Conditions from "./Conditions.ts"
import * as Names from "./Names.ts"
import * as Parcels from "./Parcels.ts"
import * as Patience from "./Patience.ts"
import * as Purposes from "./Purposes.ts"
import * as Witness from "./Witness.ts"

/** The probability of this setting. */
const chances = {
  twoNsqd: 0.5,
  lookupd: 0.5,
  inMemory: 0.5,
  lowCap: 0.5,
  lowLimit: 0.3,
  exact: 0.3,
  publishOverAll: 0.3,
  kill: 0.5,
  all: 0.3,
  machineEnds: 0.5
}

const lookupUrl = "http://nsqlookupd:4161"

const flagsOf = ({ draw, scenario: { lease } }: World): Partial<Flags> => ({
  // The handlers of a scenario take five leases at most, which leaves a tenth of this for settling.
  maxMsgTimeout: draw.chance("longest lease", chances.lowLimit) ? lease * 6 : Math.max(900_000, lease * 6),
  maxReqTimeout: draw.chance("cap", chances.lowCap) ? 30_000 : 3_600_000,
  ...(draw.chance("memory", chances.inMemory) ? {} : { memQueueSize: 0 })
})

/** The texts with which nsqd refuses a message. A limit in them must not be lower than the real one, which clients learn. */
const texts: Readonly<Record<Refusal["reason"], (command: string) => string>> = {
  BodyTooLarge: (command) => `E_BAD_MESSAGE ${command} message too big 1048577 > 1048576`,
  Unroutable: (command) => `E_BAD_TOPIC ${command} topic name is not valid`,
  AccessRefused: (command) => `E_UNAUTHORIZED AUTH failed for ${command}`
}

/** The servers of a world. */
const serve = (world: World, names: ReadonlyArray<string>, purposes: Purposes.Purposes, waits: () => void) => {
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
          const reason = Store.refusal(world, Names.inWorld(topic), Parcels.read(body))
          return reason && texts[reason](command)
        },
        lasts: (lease) => (fault("echo", `${name} clock`) ? draw.between(`${name} step`, 0, lease) : lease)
      }
    )
    const connect: Nsqd.Nsqd["connect"] = (output) => {
      const session = nsqd.connect(output)
      return { ...session, execute: (command) => witness.during(command, () => session.execute(command)) }
    }
    network.add({ ...nsqd, connect }, `${name}:4150`, `http://${name}:4151`)
    return nsqd
  })
  const lookupd: Lookupd.Lookupd = Lookupd.make(
    host,
    all.map((nsqd) => ({ nsqd, host: nsqd.name, port: 4150, httpPort: 4151 }))
  )
  network.addLookupd(lookupd, lookupUrl)
  return { all, lookupd, network }
}

/** The network as a process has it: nothing arrives once it is dead, and nothing while it stands still. */
const within = (
  world: World,
  machine: Machine,
  network: Network.Network,
  { arrived, written }: Purposes.Purposes
): Network.Network => {
  const { isAlive, monotonic, name, onFrozen, onKilled, perform } = machine
  const caller = ({ clientId, purpose }: Network.Caller): Network.Caller => ({
    clientId,
    purpose: `${name} ${purpose}`
  })
  return {
    ...network,
    // Heartbeats do not depend on the wall clock.
    host: { ...Host.ofProcess(world, machine), now: monotonic },
    connect: (address, ends, from) => {
      const { clientId = "" } = from
      const link = network.connect(
        address,
        {
          arrived: (frame) =>
            perform(() => {
              arrived(clientId, frame)
              ends.arrived(frame)
            }),
          closed: () => perform(ends.closed)
        },
        caller(from)
      )
      if (link === undefined) return undefined
      onKilled(() => {
        if (!world.draw.chance(`${name} machine`, chances.machineEnds)) return link.drop()
        link.breakOff({ silent: 0, client: undefined, server: Network.silence })
      })
      // It answers no heartbeats.
      onFrozen((millis) => {
        if (millis > Network.silence)
          world.after(Network.silence, () => link.breakOff({ silent: 0, client: 0, server: 0 }))
      })
      return {
        ...link,
        write: (command) => {
          if (!isAlive()) return
          written(name, clientId, command)
          link.write(command)
        }
      }
    },
    request: (url, method, path, from) =>
      new Promise((resolve, reject) => {
        if (!isAlive()) return
        network.request(url, method, path, caller(from)).then(
          (response) => perform(() => resolve(response)),
          (error) => perform(() => reject(error))
        )
      })
  }
}

/** The part of a receipt that names its delivery. */
interface Receipt {
  readonly session: { readonly connection: { readonly clientId: string } }
  readonly id: string
  readonly deliveries: number
}

/** Brokers without messages. */
export const make = (world: World): Model => {
  const { draw, scenario } = world
  const names = draw.chance("daemons", chances.twoNsqd) ? ["nsqd1", "nsqd2"] : ["nsqd1"]
  const purposes = Purposes.make(world)
  const { patient, wakeAll } = Patience.make(world)
  const { all, lookupd, network } = serve(world, names, purposes, wakeAll)
  const options: NsqOptions.Options = {
    messageTimeout: scenario.lease,
    retry: draw.chance("exact", chances.exact) ? "exact" : "native",
    publishOver: draw.chance("publish over", chances.publishOverAll) ? "all" : "first",
    ...(draw.chance("nsqlookupd", chances.lookupd)
      ? { lookupd: [lookupUrl] }
      : { nsqd: names.map((name) => `${name}:4150`) })
  }
  const numbers = new WeakMap<Receipt, number>()
  const numberOf = (delivery: Delivery.Delivery): number => {
    const receipt = delivery.receipt as Receipt // as the adapter makes them
    const { deliveries: attempts, id, session } = receipt
    const number = numbers.get(receipt) ?? purposes.arrivedAs({ clientId: session.connection.clientId, id, attempts })
    numbers.set(receipt, number)
    return number
  }

  const isEmpty = (topic: Topic): boolean => [topic, ...topic.channels()].every(({ waiting }) => waiting().length === 0)
  const isIdle = (queue: string) => (): boolean =>
    all.every(({ topics }) => topics().every((topic) => Names.inWorld(topic.name) !== queue || isEmpty(topic)))
  /** Publishes of foreign producers that found no nsqd. */
  let waiting: Array<() => void> = []

  const any = <A>(place: string, of: ReadonlyArray<A>): A | undefined =>
    of[Math.floor(draw.between(place, 0, of.length))]

  const store = (queue: string, parcel: Store.Parcel, stored: () => void): void => {
    const nsqd = any(
      "foreign",
      all.filter(({ isUp }) => isUp())
    )
    if (nsqd === undefined) return void waiting.push(() => store(queue, parcel, stored))
    nsqd.topic(Names.topicOf(queue)).put(Parcels.write(parcel), 0, undefined)
    stored()
  }

  const restart = (nsqd: Nsqd.Nsqd, away: number): void => {
    if (!nsqd.isUp()) return
    nsqd.restart(draw.chance(`${nsqd.name} restarts`, chances.kill) ? "kill" : "orderly", away)
    world.after(away, () => {
      const publishes = waiting
      waiting = []
      for (const publish of publishes) publish()
    })
  }

  return {
    client: (machine) =>
      NsqBroker.make(options).pipe(
        Effect.provideService(Driver, NsqDriver.make(within(world, machine, network, purposes), machine.name)),
        Effect.map((service) => ({
          ...service,
          subscribe: (request) =>
            Effect.updateService(service.subscribe(request), Clock.Clock, (clock) =>
              patient(machine, clock, isIdle(request.queue))
            ),
          numberOf
        }))
      ),
    publish: (queue, parcel, stored) => {
      store(queue, parcel, stored)
      // A producer without an answer publishes again.
      if (world.fault("twice", "foreign")) store(queue, parcel, () => {})
    },
    restart: (away) => {
      const one = any("restarts", all)!
      for (const nsqd of draw.chance("all restart", chances.all) ? all : [one]) restart(nsqd, away)
      if (draw.chance("nsqlookupd restarts", chances.all)) lookupd.restart(away)
    },
    throttle: (millis) => {
      for (const { setTrouble } of all) setTrouble("the disk is full")
      world.after(millis, () => {
        for (const { setTrouble } of all) setTrouble(undefined)
      })
    }
  }
}
