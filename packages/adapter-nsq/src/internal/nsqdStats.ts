/** The statistics of one nsqd: `base` is the address of its HTTP interface. */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { HttpInterface } from "./address.ts"
import * as Http from "./http.ts"
import type { Queue } from "./names.ts"
import type { ErrorContext } from "./toBrokerError.ts"

/** Counts of one channel, including messages of its topic that are in no channel yet. */
export interface Depths {
  readonly ready: number
  readonly inFlight: number
  readonly delayed: number
  /** Whether the channel, or its topic, is paused. */
  readonly isPaused: boolean
  /** Whether the topic does not exist, or has only other channels. */
  readonly isMissing: boolean
  /** Whether the channel itself exists; a subscription would create it. A sum does not have this field. */
  readonly hasChannel?: boolean
  /** Connections that are subscribed to the channel. */
  readonly clients: number
}

const none: Depths = { ready: 0, inFlight: 0, delayed: 0, isPaused: false, isMissing: true, clients: 0 }

/**
 * Returns the sum of each number, whether any is paused, and whether all are missing. Consumers connect to every nsqd,
 * so `clients` is the highest number instead.
 */
export const sum = (all: ReadonlyArray<Depths>): Depths =>
  all.reduce(
    (a, b) => ({
      ready: a.ready + b.ready,
      inFlight: a.inFlight + b.inFlight,
      delayed: a.delayed + b.delayed,
      isPaused: a.isPaused || b.isPaused,
      isMissing: a.isMissing && b.isMissing,
      clients: Math.max(a.clients, b.clients)
    }),
    none
  )

const records = (value: unknown): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  Array.isArray(value) ? value.filter(Predicate.isReadonlyObject) : []

/** The statistics of a channel. */
interface Channel {
  readonly name: string
  readonly depth: number
  readonly inFlight: number
  readonly deferred: number
  readonly isPaused: boolean
  readonly clientCount: number
  /** The ids of its clients, if they were requested. */
  readonly clients: ReadonlyArray<string>
}

/** The statistics of a topic. */
interface Topic {
  readonly name: string
  /** Messages that are in no channel yet. */
  readonly depth: number
  readonly isPaused: boolean
  readonly channels: ReadonlyArray<Channel>
}

const toChannel = (json: unknown): Channel | undefined => {
  if (!Predicate.isReadonlyObject(json) || typeof json["channel_name"] !== "string") return undefined
  const [depth, inFlight, deferred] = ["depth", "in_flight_count", "deferred_count"].map((key) =>
    Http.numberOf(json[key])
  )
  if (depth === undefined || inFlight === undefined || deferred === undefined) return undefined
  return {
    name: json["channel_name"],
    depth,
    inFlight,
    deferred,
    isPaused: json["paused"] === true,
    clientCount: Http.numberOf(json["client_count"]) ?? 0,
    clients: records(json["clients"]).map((each) => String(each["client_id"]))
  }
}

const toTopic = (json: unknown): Topic | undefined => {
  if (!Predicate.isReadonlyObject(json) || !Array.isArray(json["channels"])) return undefined
  const depth = Http.numberOf(json["depth"])
  const channels = json["channels"].map(toChannel)
  if (depth === undefined || !channels.every((channel) => channel !== undefined)) return undefined
  return { name: String(json["topic_name"]), depth, isPaused: json["paused"] === true, channels }
}

/** Reads the topics of a response. nsqd sends `null` when there are none. */
const toTopics = (json: unknown): ReadonlyArray<Topic> | undefined => {
  if (!Predicate.isReadonlyObject(json) || typeof json["version"] !== "string") return undefined
  const all: unknown = json["topics"] ?? []
  const topics = Array.isArray(all) ? all.map(toTopic) : [undefined]
  return topics.every((topic) => topic !== undefined) ? topics : undefined
}

/** Returns the statistics of topics. https://nsq.io/components/nsqd.html#get-stats */
export const statistics = (
  base: HttpInterface,
  context: ErrorContext,
  access: Http.Access,
  params: Readonly<Record<string, string>>
): Effect.Effect<ReadonlyArray<Topic>, BrokerError.BrokerError> => {
  const path = `stats?${Http.query({ format: "json", include_clients: "false", include_mem: "false", ...params })}`
  return Effect.flatMap(Http.request(context, access, { base, path }), (json) =>
    Http.parse(context, base, json, toTopics)
  )
}

/** Returns all channels with their topics, and topics without channels. */
export const queues = (
  base: HttpInterface,
  access: Http.Access
): Effect.Effect<
  ReadonlyArray<{ readonly topic: string; readonly channel: string | undefined }>,
  BrokerError.BrokerError
> =>
  Effect.map(statistics(base, { operation: "find" }, access, {}), (topics) =>
    topics.flatMap(({ channels: its, name: topic }) => {
      const names = its.length === 0 ? [undefined] : its.map(({ name }) => name)
      return names.map((channel) => ({ topic, channel }))
    })
  )

/** Returns the statistics of a topic; `undefined` if it does not exist. */
const stats = (
  base: HttpInterface,
  topic: string,
  access: Http.Access,
  params: Readonly<Record<string, string>> = {}
): Effect.Effect<Topic | undefined, BrokerError.BrokerError> =>
  Effect.map(statistics(base, { operation: "counts", queue: topic }, access, { topic, ...params }), ([found]) => found)

/** Returns the names of a topic's channels; `undefined` if the topic does not exist. */
export const channels = (
  base: HttpInterface,
  topic: string,
  access: Http.Access
): Effect.Effect<ReadonlyArray<string> | undefined, BrokerError.BrokerError> =>
  Effect.map(stats(base, topic, access), (found) => found?.channels.map(({ name }) => name))

/** Returns the ids of a channel's consumers; empty if the channel does not exist. */
export const clients = (
  base: HttpInterface,
  { channel, topic }: Queue,
  access: Http.Access
): Effect.Effect<ReadonlyArray<string>, BrokerError.BrokerError> =>
  Effect.map(
    stats(base, topic, access, { include_clients: "true" }),
    (found) => found?.channels.find(({ name }) => name === channel)?.clients ?? []
  )

/** Returns the counts of a channel from the statistics of its topic. */
export const depthsIn = (found: Topic | undefined, { channel }: Queue): Depths => {
  const its = found?.channels.find(({ name }) => name === channel)
  return {
    ready: (found?.depth ?? 0) + (its?.depth ?? 0),
    inFlight: its?.inFlight ?? 0,
    delayed: its?.deferred ?? 0,
    isPaused: found?.isPaused === true || its?.isPaused === true,
    // A topic without channels keeps its messages for the first one.
    isMissing: found === undefined || (its === undefined && found.channels.length > 0),
    hasChannel: its !== undefined,
    clients: its?.clientCount ?? 0
  }
}

/** Returns the counts of a channel, including those of its topic. */
export const depths = (
  base: HttpInterface,
  queue: Queue,
  access: Http.Access
): Effect.Effect<Depths, BrokerError.BrokerError> =>
  Effect.map(stats(base, queue.topic, access), (found) => depthsIn(found, queue))

/** Returns the number of messages in a topic that are in no channel yet. */
export const waiting = (
  base: HttpInterface,
  topic: string,
  access: Http.Access
): Effect.Effect<number, BrokerError.BrokerError> =>
  Effect.map(stats(base, topic, access), (found) => found?.depth ?? 0)
