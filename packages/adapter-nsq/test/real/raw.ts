/** Another client of NSQ, by its protocol alone: what is in the topics of a test, whoever put it there. */
import { once } from "node:events"
import { connect } from "node:net"
import { Wait } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { type Frame, frames } from "./traffic.ts"

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
  /** Whether clients that are still connected have finished every message that the channel ever got. */
  readonly isFinished: boolean
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
      readonly message_count: number
      readonly clients: ReadonlyArray<{ readonly finish_count: number }>
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
  const { topics } = JSON.parse(await ask(http, "stats?format=json")) as Stats
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
          clients: channel.client_count,
          isFinished: channel.clients.reduce((sum, client) => sum + client.finish_count, 0) === channel.message_count
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

/** A command with a body. */
const withBody = (name: string, body: string): string => {
  const size = Buffer.alloc(4)
  size.writeUInt32BE(body.length)
  return `${name}\n${size.toString("latin1")}${body}`
}

/** A message, as its frame. */
export type Message = Extract<Frame, { readonly name: "message" }>

/**
 * Subscribes another client to a channel. nsqd may send `ready` messages that are not finished.
 *
 * While nsqd moves a message to a client, the message is in no count. The loop of nsqd that moves messages also sends the
 * heartbeats. So `isOver` answers true if `isEmpty` is true and two heartbeats later, the first of which may have been on
 * its way, no message has arrived and `isEmpty` is still true.
 */
export const subscribe = async (
  { http, name, topic }: Pick<Channel, "http" | "name" | "topic">,
  ready: number,
  onMessage: (message: Message, send: (command: string) => void) => void
) => {
  const [host, port] = http.split(":")
  const socket = connect(Number(port) - 1, host)
  socket.on("error", () => {})
  await once(socket, "connect")
  const send = (command: string) => void socket.write(`${command}\n`, "latin1")
  let [messages, heartbeats] = [0, 0]
  const decode = frames()
  socket.on("data", (data) => {
    for (const frame of decode(data)) {
      if (frame.name === "message") {
        messages++
        onMessage(frame, send)
      } else if (frame.text === "_heartbeat_") {
        heartbeats++
        // One that arrives while the connection ends needs no answer.
        if (socket.writable) send("NOP")
      }
    }
  })
  // The shortest interval that nsqd allows.
  const identify = withBody("IDENTIFY", JSON.stringify({ heartbeat_interval: 1000 }))
  send(`  V2${identify}SUB ${topic} ${name}\nRDY ${ready}`)
  let since: { readonly messages: number; readonly heartbeats: number } | undefined
  const isOver = async (isEmpty: () => Promise<boolean>) => {
    const before = heartbeats
    if (!(await isEmpty())) since = undefined
    else if (since?.messages !== messages) since = { messages, heartbeats }
    return since !== undefined && before >= since.heartbeats + 2
  }
  return { isOver, send, socket }
}

/** Takes every message out of a channel and answers their bodies. It waits for messages in flight or deferred. */
const drain = async (channel: Channel): Promise<ReadonlyArray<string>> => {
  const { http, name, topic } = channel
  const bodies: Array<string> = []
  const { isOver, socket } = await subscribe(channel, 100, ({ body, id }, send) => {
    bodies.push(body.toString("latin1"))
    send(`FIN ${id}`)
  })
  const isEmpty = async () => {
    const found = (await channels([http], topic)).find((one) => one.topic === topic && one.name === name)
    return found === undefined || found.ready + found.inFlight + found.deferred === 0
  }
  const what = () => `the end of ${topic}, of which ${bodies.length} came`
  await Effect.runPromise(Wait.until(what, () => isOver(isEmpty), 120_000))
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
