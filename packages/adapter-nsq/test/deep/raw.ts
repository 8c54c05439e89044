/** Another client of NSQ, by its protocol alone: what is in the topics of a test, whoever put it there. */
import { once } from "node:events"
import { connect } from "node:net"
import { Wait } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { frames } from "../real/traffic.ts"

export interface Channel {
  /** The nsqd's HTTP interface. */
  readonly http: string
  readonly topic: string
  readonly name: string
  readonly ready: number
  /** Those of them that are still on their way from the topic to its channels. */
  readonly untaken: number
  readonly inFlight: number
  readonly deferred: number
  readonly clients: number
}

interface Stats {
  readonly topics: ReadonlyArray<{
    readonly topic_name: string
    readonly depth: number
    readonly message_count: number
    readonly channels: ReadonlyArray<{
      readonly channel_name: string
      readonly depth: number
      readonly in_flight_count: number
      readonly deferred_count: number
      readonly client_count: number
    }>
  }>
}

const ask = async (http: string, path: string, init: RequestInit = {}) => {
  const response = await fetch(`http://${http}/${path}`, init)
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return response.text()
}

/**
 * Makes these nsqd known to an nsqlookupd that has forgotten them, as after its restart: an nsqd tells it of every new
 * topic, and else looks after its connection every 15 s only.
 */
export const register = async (http: ReadonlyArray<string>, lookupd: string): Promise<void> => {
  let count = 0
  const isKnown = async () => {
    const { producers } = JSON.parse(await ask(lookupd, "nodes")) as { readonly producers: ReadonlyArray<unknown> }
    if (producers.length === http.length) return true
    for (const base of http) await ask(base, `topic/create?topic=here-${count}`, { method: "POST" })
    count++
    return false
  }
  await Effect.runPromise(Wait.until("an nsqlookupd that knows every nsqd", isKnown))
}

/** The topics on an nsqd whose name begins so. */
const topicsOf = async (http: string, topic: string): Promise<Stats["topics"]> => {
  const { topics } = JSON.parse(await ask(http, "stats?format=json&include_clients=false")) as Stats
  return topics.filter(({ topic_name: name }) => name.startsWith(topic))
}

/**
 * How many messages each of these nsqd has stored in topics whose name begins so, whatever has become of them. It is exact as
 * soon as a publish is answered; what waits is not: a message on its way to a channel, or to a client, is in no other count.
 */
export const stored = (http: ReadonlyArray<string>, topic: string): Promise<ReadonlyArray<number>> =>
  Promise.all(http.map(async (base) => (await topicsOf(base, topic)).reduce((sum, one) => sum + one.message_count, 0)))

/** The channels, on all these nsqd, of topics whose name begins so. */
export const channels = async (http: ReadonlyArray<string>, topic: string): Promise<ReadonlyArray<Channel>> => {
  const found = await Promise.all(
    http.map(async (base) =>
      (await topicsOf(base, topic)).flatMap((one) =>
        one.channels.map((channel) => ({
          http: base,
          topic: one.topic_name,
          name: channel.channel_name,
          ready: channel.depth + one.depth,
          untaken: one.depth,
          inFlight: channel.in_flight_count,
          deferred: channel.deferred_count,
          clients: channel.client_count
        }))
      )
    )
  )
  return found.flat()
}

/** How many messages wait, are in flight or are deferred in topics whose name begins so. */
export const held = async (http: ReadonlyArray<string>, topic: string): Promise<number> =>
  (await channels(http, topic)).reduce((sum, { deferred, inFlight, ready }) => sum + ready + inFlight + deferred, 0)

/** Whether there is nothing but dead letters in topics whose name begins so. */
export const isWorked = async (http: ReadonlyArray<string>, topic: string): Promise<boolean> =>
  (await channels(http, topic)).every(
    (one) => one.topic.endsWith(".dlq") || one.ready + one.inFlight + one.deferred === 0
  )

/** Takes every message out of a channel, those in flight or deferred too when they come, and answers their bodies. */
export const drain = async ({ http, name, topic }: Channel): Promise<ReadonlyArray<string>> => {
  const [host, port] = http.split(":")
  const socket = connect(Number(port) - 1, host)
  socket.on("error", () => {})
  await once(socket, "connect")
  const bodies: Array<string> = []
  const decode = frames()
  socket.on("data", (data) => {
    for (const frame of decode(data)) {
      if (frame.name !== "message") continue
      bodies.push(frame.body.toString("latin1"))
      socket.write(`FIN ${frame.id}\n`)
    }
  })
  socket.write(`  V2SUB ${topic} ${name}\nRDY 100\n`)
  const left = async () => {
    const found = (await channels([http], topic)).find((one) => one.topic === topic && one.name === name)
    return found === undefined ? 0 : found.ready + found.inFlight + found.deferred
  }
  const isEmpty = async () => (await left()) === 0
  await Effect.runPromise(Wait.until(() => `the end of ${topic}, of which ${bodies.length} came`, isEmpty, 120_000))
  socket.destroy()
  return bodies
}

/** The id that a test's message has as its body, behind whatever envelope. */
const idIn = (body: string): string => /"([^"]*)"$/.exec(body)?.[1] ?? body

/** The ids in topics whose name begins so: those of dead letters, or all the others. */
export const drainIds = async (http: ReadonlyArray<string>, topic: string, of: "dead letters" | "work") => {
  const all = await channels(http, topic)
  const wanted = all.filter((channel) => channel.topic.endsWith(".dlq") === (of === "dead letters"))
  return (await Promise.all(wanted.map(drain))).flat().map(idIn)
}
