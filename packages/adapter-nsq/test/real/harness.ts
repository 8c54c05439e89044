/** The real NSQ with a harness that looks behind the adapter, by HTTP and the protocol alone. */
import { wire, type Command, type NsqBroker, type Reader, type Wire } from "@requeue/brokers"
import { Harness, Wait } from "@requeue/conformance"
import { Broker } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { once } from "node:events"
import { createServer } from "node:http"
import { type AddressInfo } from "node:net"
import { toDelivery, type Frame } from "../../src/internal/consume/toDelivery.ts"
import * as Names from "../../src/internal/names.ts"
import { NsqBroker as Adapter, type NsqOptions } from "../../src/index.ts"
import { queueName } from "../world.ts"
import { type Message, subscribe } from "./raw.ts"
import { readCommand } from "./traffic.ts"

const names = (queue: string): Names.Queue => {
  const parsed = Names.parse(queue, "requeue")
  if (Names.isRefused(parsed)) throw new Error(parsed.detail)
  return parsed
}

const post = async (url: string, body = ""): Promise<void> => {
  const response = await fetch(url, { method: "POST", body })
  if (!response.ok) throw new Error(`${url}: ${response.status}`)
}

/** Until an nsqd looks after the delays of all channels that there are: it learns of new ones all at once. */
const untilAttended = async (http: string): Promise<void> => {
  const last = names(queueName("last"))
  await post(`http://${http}/topic/create?topic=${last.topic}`)
  await post(`http://${http}/channel/create?topic=${last.topic}&channel=${last.channel}`)
  await post(`http://${http}/pub?topic=${last.topic}&defer=1`, "due")
  const isDue = async () => (await depths(http, last)).ready === 1 && (await depths(http, last)).delayed === 0
  await Effect.runPromise(Wait.until("an nsqd that looks after its channels", isDue))
}

/** Queues that are made at a time for cases that are measured again. */
const restock = 20

/**
 * Queues for cases. An nsqd looks after a new channel's delays only after up to 5 seconds, so that many are made before
 * the first case begins, as those of a service are that has run for a while.
 */
const stock = async (https: ReadonlyArray<string>, size: number): Promise<() => Promise<string>> => {
  const ready: Array<string> = []
  let filling: Promise<void> | undefined
  const make = async ({ channel, topic }: Names.Queue, http: string) => {
    await post(`http://${http}/topic/create?topic=${topic}`)
    await post(`http://${http}/channel/create?topic=${topic}&channel=${channel}`)
  }
  const fill = async (count: number): Promise<void> => {
    const fresh = Array.from({ length: count }, () => queueName("case"))
    const topics = fresh.flatMap((queue) => [names(queue), Names.retry(names(queue))])
    for (const http of https) {
      for (let from = 0; from < topics.length; from += 20) {
        await Promise.all(topics.slice(from, from + 20).map((each) => make(each, http)))
      }
    }
    await Promise.all(https.map(untilAttended))
    ready.push(...fresh)
  }
  const next = async (): Promise<string> => {
    const found = ready.pop()
    if (found !== undefined) return found
    filling ??= fill(restock).finally(() => (filling = undefined))
    await filling
    return next()
  }
  await fill(size)
  return next
}

interface Depths {
  readonly depth: number
  readonly in_flight_count: number
  readonly deferred_count: number
}

interface Stats {
  readonly topics: ReadonlyArray<{ readonly depth: number; readonly channels: ReadonlyArray<Depths> | null }> | null
}

/** What one nsqd holds of a channel. */
const depths = async (http: string, { channel, topic }: Names.Queue) => {
  const response = await fetch(`http://${http}/stats?format=json&topic=${topic}&channel=${channel}&include_mem=false`)
  const [found] = ((await response.json()) as Stats).topics ?? []
  const [mine] = found?.channels ?? []
  return {
    ready: (found?.depth ?? 0) + (mine?.depth ?? 0),
    inFlight: mine?.in_flight_count ?? 0,
    delayed: mine?.deferred_count ?? 0
  }
}

/** Every message of a channel once, and each put back as it was: giving it back would count as a delivery. */
const read = async (http: string, { channel, isOwn, topic }: Names.Queue): Promise<ReadonlyArray<Frame>> => {
  const { ready: wanted } = await depths(http, { channel, isOwn, topic })
  if (wanted === 0) return []
  const seen: Array<Message> = []
  const { isOver, send, socket } = await subscribe({ http, name: channel, topic }, wanted, (message) => {
    if (seen.length < wanted) seen.push({ ...message, body: Buffer.from(message.body) })
  })
  const isTaken = async () => {
    const { inFlight, ready } = await depths(http, { channel, isOwn, topic })
    return ready === 0 && inFlight <= seen.length
  }
  // Unless another client took the others.
  const isRead = async () => seen.length >= wanted || isOver(isTaken)
  await Effect.runPromise(Wait.until(() => `${wanted} messages of ${topic}, ${seen.length} came`, isRead))
  send("RDY 0")
  for (const { body, id } of seen) {
    const response = await fetch(`http://${http}/pub?topic=${topic}`, { method: "POST", body: new Uint8Array(body) })
    if (!response.ok) throw new Error(`${topic}: ${response.status}`)
    send(`FIN ${id}`)
  }
  const ended = once(socket, "close")
  socket.end()
  await ended
  return seen
}

/** An nsqlookupd that names the proxies instead of the nsqd behind them. */
const lookupd = async (
  real: string,
  ports: ReadonlyMap<number, number>
): Promise<{ port: number; close: () => void }> => {
  const server = createServer((request, response) => {
    void (async () => {
      const answer = await fetch(`http://${real}${request.url}`)
      const text = await answer.text()
      response.writeHead(answer.status, { "content-type": "application/json" })
      response.end(text.replaceAll(/"tcp_port":(\d+)/g, (_, port) => `"tcp_port":${ports.get(Number(port)) ?? port}`))
    })().catch(() => response.destroy())
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() }
}

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((a, b) => a + b, 0)

/** Reads one connection. A settlement is about the topic that the connection consumes. */
const reader = (): Reader => {
  let consumed = ""
  return (input) => {
    const found = readCommand(input)
    if (found === undefined) return undefined
    const { part: { args: [topic = ""], name } = { args: [], name: "" }, size } = found
    if (name === "SUB") consumed = topic
    return { size, name, about: name.endsWith("PUB") ? topic : consumed }
  }
}

const commandsOf: Readonly<Record<Harness.Operation, ReadonlyArray<string>>> = {
  publish: ["PUB", "MPUB", "DPUB"],
  settle: ["FIN", "REQ"],
  extend: ["TOUCH"],
  receive: ["RDY"]
}

/** A command that is lost, or whose answer is: the connection breaks. Nothing but nsqd itself can refuse in its name. */
const failNext =
  (proxies: ReadonlyArray<Wire>): Harness.FailNext =>
  (operation, failure, queue) => {
    if (failure === "refused" || operation === "extend") return undefined
    if (failure === "lateAnswer" && operation !== "publish") return undefined
    const arm = Effect.sync(() => {
      const topics = [queue, `${queue}.dlq`].flatMap((each) => [names(each).topic, Names.retry(names(each)).topic])
      let isFirst = true
      const concerns = ({ about, name }: Command): boolean => {
        const holds = isFirst && commandsOf[operation].includes(name) && topics.includes(about)
        isFirst &&= !holds
        return holds
      }
      return proxies.map(({ delayNext, loseNext }) =>
        failure === "lateAnswer"
          ? delayNext(concerns)
          : loseNext(concerns, failure === "lostRequest" ? "command" : "answer")
      )
    })
    const disarm = (faults: Effect.Success<typeof arm>) => Effect.sync(() => faults.forEach(({ end }) => end()))
    return Effect.map(Effect.acquireRelease(arm, disarm), (faults) => () => faults.some(({ happened }) => happened()))
  }

/** Milliseconds: a machine on which everything is slow still connects in time. */
const connectTimeout = 60_000

/** How the adapter finds the nsqd, and how late it may be. */
export interface Way {
  readonly by: "address" | "nsqlookupd"
  readonly lateness: number
  /** Queues that are made before the first case. */
  readonly queues: number
  readonly options?: NsqOptions.Options | undefined
}

export const layer = (broker: NsqBroker, { by, lateness, options = {}, queues }: Way) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const ports = broker.nodes.map(({ port }) => port)
      const https = ports.map((port) => `127.0.0.1:${port + 1}`)
      const proxies = yield* Effect.acquireRelease(
        Effect.promise(() => Promise.all(ports.map((port) => wire(port, reader)))),
        (all: ReadonlyArray<Wire>) => Effect.promise(() => Promise.all(all.map(({ close }) => close())))
      )
      const between = yield* Effect.acquireRelease(
        Effect.promise(() =>
          lookupd(
            new URL(broker.managementUrl!).host,
            new Map(ports.map((port, index) => [port, proxies[index]!.port]))
          )
        ),
        ({ close }) => Effect.sync(close)
      )
      const next = yield* Effect.promise(() => stock(https, queues))
      const open = Adapter.make({
        messageTimeout: 2000,
        connectTimeout,
        ...options,
        ...(by === "nsqlookupd"
          ? { lookupd: [`127.0.0.1:${between.port}`], lookupdInterval: 1000 }
          : { nsqd: proxies.map(({ port }) => `127.0.0.1:${port}`), nsqdHttp: https })
      })
      const adapter = yield* open
      const topicsOf = (queue: string) => [names(queue), Names.retry(names(queue))]
      const harness = Harness.Harness.of({
        name: `nsq ${broker.version}, ${ports.length} nsqd by ${by}`,
        uniqueQueue: () => Effect.promise(next),
        publishRaw: (queue, body) =>
          Effect.promise(async () => {
            const url = `http://${https[0]}/pub?topic=${names(queue).topic}`
            const response = await fetch(url, { method: "POST", body: new Uint8Array(body) })
            if (!response.ok) throw new Error(`${url}: ${response.status}`)
          }),
        deadLetters: (queue) =>
          Effect.promise(async () => {
            const found = await Promise.all(https.map((http) => read(http, names(queue))))
            return found
              .flat()
              .map((frame) => ({
                ...toDelivery(frame, { now: Date.now(), nsqdNow: Date.now(), due: undefined }),
                receipt: undefined
              }))
              .toSorted((a, b) => (a.metadata.deadLetter?.at ?? 0) - (b.metadata.deadLetter?.at ?? 0))
          }),
        pending: (queue) =>
          Effect.promise(async () => {
            const all = await Promise.all(https.flatMap((http) => topicsOf(queue).map((each) => depths(http, each))))
            return {
              ready: sum(all.map(({ ready }) => ready)),
              inFlight: sum(all.map(({ inFlight }) => inFlight)),
              delayed: sum(all.map(({ delayed }) => delayed))
            }
          }),
        cutConnections: Effect.sync(() => {
          for (const { cut } of proxies) cut()
        }),
        restart: broker.nodes.length === 0 ? undefined : Effect.promise(broker.restart),
        another: open,
        failNext: failNext(proxies),
        deleteQueue: (queue) =>
          Effect.promise(async () => {
            for (const [http, { topic }] of https.flatMap((each) =>
              topicsOf(queue).map((one) => [each, one] as const)
            )) {
              const url = `http://${http}/topic/delete?topic=${topic}`
              const { ok, status } = await fetch(url, { method: "POST" })
              // A topic is not on every nsqd.
              if (!ok && status !== 404) throw new Error(`${url}: ${status}`)
            }
          }),
        foreignQueue: undefined,
        // nsqd confirms messages that are only in its memory.
        crash: undefined,
        powerCut: undefined,
        transactions: undefined,
        lateness,
        settleTime: 50
      })
      return Context.make(Broker.Broker, adapter).pipe(Context.add(Harness.Harness, harness))
    })
  )
