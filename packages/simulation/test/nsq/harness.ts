/** The adapter that ships on simulated nsqd, with a harness that looks into them. */
import { NsqBroker, type NsqOptions } from "@requeue/adapter-nsq"
import * as AdapterDriver from "@requeue/adapter-nsq/driver"
import { Harness } from "@requeue/conformance"
import { Broker } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Host from "../../src/servers/Host.ts"
import { Driver, type Facts, type Flags, Lookupd, Network, Nsqd } from "../../src/servers/nsq/index.ts"
import { placeOf, placesOf, read } from "./queues.ts"

export interface Settings {
  /** The number of nsqd. Default: 1. */
  readonly nodes?: number
  /** How the adapter finds them. Default: by their addresses. */
  readonly by?: "address" | "nsqlookupd"
  /** Of all nsqd, or of each by its number. */
  readonly flags?: Partial<Flags.Flags> | ((index: number) => Partial<Flags.Flags>)
  readonly version?: string
  /** Receives what happens to messages. Default: nothing does. */
  readonly report?: Facts.Report
  readonly options?: NsqOptions.Options
  /** Changes what the driver does. Default: nothing. */
  readonly driver?: (driver: AdapterDriver.Driver) => AdapterDriver.Driver
  /** The chance of the servers. Default: always the same. */
  readonly seed?: string
}

/** Simulated servers, and how to reach them. */
export interface World {
  readonly host: Host.Host
  readonly network: Network.Network
  readonly nsqd: ReadonlyArray<Nsqd.Nsqd>
  readonly lookupd: Lookupd.Lookupd
  readonly options: NsqOptions.Options
  /** Runs an effect as another process, whose connections are in this world. */
  readonly within: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Opens a broker of another process. */
  readonly open: (
    options?: NsqOptions.Options,
    make?: (options?: NsqOptions.Options) => ReturnType<typeof NsqBroker.make>
  ) => ReturnType<typeof NsqBroker.make>
}

const lookupUrl = "http://lookup:4161"

/** Starts servers in the time of the caller. */
export const world = ({
  by = "address",
  driver: change = (driver) => driver,
  flags = {},
  nodes = 1,
  options = {},
  version = "1.3.0",
  report = () => {},
  seed = "nsq"
}: Settings = {}) =>
  Effect.gen(function* () {
    const host = yield* Random.withSeed(Host.make, seed)
    const network = Network.make(host)
    const found = (topic: string): ReadonlyArray<string> => lookupd.channels(topic)
    const numbers = Nsqd.numbering()
    const nsqd = Array.from({ length: nodes }, (_, index) =>
      Nsqd.make(host, {
        name: `n${index}`,
        version,
        flags: typeof flags === "function" ? flags(index) : flags,
        lookup: found,
        report,
        numbers
      })
    )
    for (const each of nsqd) network.add(each, `${each.name}:4150`, `http://${each.name}:4151`)
    const lookupd: Lookupd.Lookupd = Lookupd.make(
      host,
      nsqd.map((each) => ({ nsqd: each, host: each.name, port: 4150, httpPort: 4151 }))
    )
    network.addLookupd(lookupd, lookupUrl)
    let processes = 0
    const ways =
      by === "address"
        ? { nsqd: nsqd.map(({ name }) => `${name}:4150`) }
        : { lookupd: [lookupUrl], lookupdInterval: 1000 }
    const all: NsqOptions.Options = { messageTimeout: 2000, ...ways, ...options }
    const within: World["within"] = (effect) =>
      Effect.suspend(() =>
        Effect.provideService(effect, AdapterDriver.Driver, change(Driver.make(network, `p${++processes}`)))
      )
    return {
      host,
      network,
      nsqd,
      lookupd,
      options: all,
      within,
      open: (more = {}, make = NsqBroker.make) => within(make({ ...all, ...more }))
    } satisfies World
  })

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((a, b) => a + b, 0)

/** Queues of a service that has run for a while: nsqd scans a new channel only after up to 5 seconds. */
const stock = Effect.fnUntraced(function* ({ nsqd }: World, count: number) {
  let made = 0
  const fill = Effect.suspend(() => {
    const fresh = Array.from({ length: count }, () => `case-${++made}`)
    for (const each of nsqd) {
      for (const { channel, topic } of fresh.flatMap(placesOf)) each.topic(topic).channel(channel)
    }
    return Effect.as(Effect.sleep(5001), fresh)
  })
  const ready = [...(yield* fill)]
  return Effect.suspend(() => {
    const next = ready.shift()
    return next === undefined ? Effect.map(fill, (more) => (ready.push(...more), ready.shift()!)) : Effect.succeed(next)
  })
})

const commands: Readonly<Record<Harness.Operation, ReadonlyArray<string>>> = {
  publish: ["PUB", "MPUB", "DPUB"],
  settle: ["FIN", "REQ"],
  extend: ["TOUCH"],
  receive: ["RDY"]
}

/**
 * A publish is refused because nsqd cannot store it. The other commands have no answer that could be refused or late. A lost
 * TOUCH would be lost with its connection, and so would the delivery.
 */
const failNext =
  ({ network }: World): Harness.FailNext =>
  (operation, failure, queue) => {
    if (operation === "extend") return undefined
    if (operation !== "publish" && (failure === "refused" || failure === "lateAnswer")) return undefined
    const topics = [queue, `${queue}.dlq`].flatMap((each) => placesOf(each).map(({ topic }) => topic))
    const arm = Effect.sync(() =>
      network.failNext(failure, ({ command: { args, name }, consumes }) => {
        const topic = name.endsWith("PUB") ? args[0] : consumes
        return commands[operation].includes(name) && topic !== undefined && topics.includes(topic)
      })
    )
    return Effect.map(
      Effect.acquireRelease(arm, ({ end }) => Effect.sync(end)),
      ({ happened }) => happened
    )
  }

/** How long nsqd is away in a restart, in milliseconds. */
const away = 300

const harness = (all: World, uniqueQueue: Effect.Effect<string>): Harness.Service => {
  const { network, nsqd, open } = all
  const channelsOf = (queue: string) =>
    nsqd.flatMap((each) =>
      placesOf(queue).map(({ channel, topic }) => ({
        topic: each.existing(topic),
        channel: each.existing(topic)?.existing(channel)
      }))
    )
  return {
    name: `simulated nsqd ${nsqd[0]!.version}, ${nsqd.length}`,
    uniqueQueue: () => uniqueQueue,
    publishRaw: (queue, body) =>
      Effect.sync(() => nsqd[0]!.topic(placeOf(queue).topic).put(Buffer.from(body), 0, undefined)),
    deadLetters: (queue) =>
      Effect.sync(() => {
        const { channel, topic } = placeOf(queue)
        const waiting = nsqd.flatMap((each) => {
          const found = each.existing(topic)
          return [...(found?.waiting() ?? []), ...(found?.existing(channel)?.waiting() ?? [])]
        })
        return waiting
          .map(({ body, id, timestamp }) => ({
            ...read(body, { id, stored: Number(timestamp / 1_000_000n) }),
            receipt: undefined
          }))
          .toSorted((a, b) => (a.metadata.deadLetter?.at ?? 0) - (b.metadata.deadLetter?.at ?? 0))
      }),
    pending: (queue) =>
      Effect.sync(() => {
        const counts = channelsOf(queue).map(({ channel, topic }) => ({
          ready: (topic?.statistics().depth ?? 0) + (channel?.statistics().depth ?? 0),
          inFlight: channel?.statistics().inFlight ?? 0,
          delayed: channel?.statistics().deferred ?? 0
        }))
        return {
          ready: sum(counts.map(({ ready }) => ready)),
          inFlight: sum(counts.map(({ inFlight }) => inFlight)),
          delayed: sum(counts.map(({ delayed }) => delayed))
        }
      }),
    cutConnections: Effect.sync(() => network.cut()),
    restart: Effect.suspend(() => {
      for (const each of nsqd) each.restart("orderly", away)
      return Effect.sleep(away + 1)
    }),
    another: Effect.suspend(() => open()),
    failNext: failNext(all),
    deleteQueue: (queue) =>
      Effect.sync(() => {
        for (const each of nsqd) for (const { topic } of placesOf(queue)) each.removeTopic(topic)
      }),
    // nsqd has one kind of queue.
    foreignQueue: undefined,
    // nsqd confirms messages that are only in its memory.
    crash: undefined,
    powerCut: undefined,
    transactions: undefined,
    lateness: 10,
    settleTime: 5
  }
}

/** A broker and its harness. `make` makes the broker. Default: the adapter as it is. */
export const layer = (settings: Settings = {}, make?: Parameters<World["open"]>[1]) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const all = yield* world(settings)
      const next = yield* stock(all, 8)
      const open = (options?: NsqOptions.Options) => all.open(options, make)
      const broker = yield* open()
      return Context.make(Broker.Broker, broker).pipe(Context.add(Harness.Harness, harness({ ...all, open }, next)))
    })
  )
