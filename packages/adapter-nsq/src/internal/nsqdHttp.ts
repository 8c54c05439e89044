/** The HTTP interface of one nsqd: `base` is its address, every `timeout` is in milliseconds for one request. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { HttpInterface } from "./address.ts"
import * as Http from "./http.ts"
import type { Configured } from "./limits.ts"
import type { Queue } from "./names.ts"

/** Messages of one channel, and those of its topic that are in no channel yet. */
export interface Depths {
  readonly ready: number
  readonly inFlight: number
  readonly delayed: number
  /** Whether the channel, or its topic, is paused. */
  readonly isPaused: boolean
  /** Whether there is no such topic, or it has other channels only. */
  readonly isMissing: boolean
  /** Connections that are subscribed to the channel. */
  readonly clients: number
}

const none: Depths = { ready: 0, inFlight: 0, delayed: 0, isPaused: false, isMissing: true, clients: 0 }

/**
 * The sum of each number, whether one of them is paused, and whether all of them are missing. Consumers have a connection to
 * each: the most count.
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

const query = (params: Readonly<Record<string, string>>): string => new URLSearchParams(params).toString()

const numberOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

/** The limits that `IDENTIFY` does not answer. https://nsq.io/components/nsqd.html#get-configoption */
export const configured = (
  base: HttpInterface,
  timeout: number
): Effect.Effect<Configured, BrokerError.BrokerError> => {
  const ask = (option: string) =>
    Effect.map(Http.request({ operation: "connect" }, timeout, { base, path: `config/${option}` }), numberOf)
  return Effect.map(
    Effect.all([ask("max_req_timeout"), ask("max_msg_size"), ask("max_body_size")], { concurrency: "unbounded" }),
    ([nanos, maxMsgSize, maxBodySize]) => ({
      ...(nanos === undefined ? {} : { maxReqTimeout: Math.floor(nanos / 1e6) }),
      ...(maxMsgSize === undefined ? {} : { maxMsgSize }),
      ...(maxBodySize === undefined ? {} : { maxBodySize })
    })
  )
}

/** How many messages nsqd keeps in memory, for each topic and each channel. */
export const memQueueSize = (
  base: HttpInterface,
  timeout: number
): Effect.Effect<number | undefined, BrokerError.BrokerError> =>
  Effect.map(Http.request({ operation: "verify" }, timeout, { base, path: "config/mem_queue_size" }), numberOf)

/** Makes a topic and its channel, unless they exist. https://nsq.io/components/nsqd.html#post-channelcreate */
export const create = (
  base: HttpInterface,
  { channel, topic }: Queue,
  timeout: number
): Effect.Effect<void, BrokerError.BrokerError> => {
  const post = (path: string) =>
    Http.request({ operation: "create", queue: topic }, timeout, { base, method: "POST", path })
  return Effect.asVoid(
    Effect.andThen(post(`topic/create?${query({ topic })}`), post(`channel/create?${query({ topic, channel })}`))
  )
}

type Json = Readonly<Record<string, unknown>>

const records = (value: unknown): ReadonlyArray<Json> =>
  Array.isArray(value) ? value.filter(Predicate.isReadonlyObject) : []

/** All topics with their channels, and each topic without one. */
export const queues = (
  base: HttpInterface,
  timeout: number
): Effect.Effect<
  ReadonlyArray<{ readonly topic: string; readonly channel: string | undefined }>,
  BrokerError.BrokerError
> =>
  Effect.map(
    Http.request({ operation: "find" }, timeout, {
      base,
      path: `stats?${query({ format: "json", include_clients: "false", include_mem: "false" })}`
    }),
    (json) =>
      (Predicate.isReadonlyObject(json) ? records(json["topics"]) : []).flatMap((found) => {
        const topic = String(found["topic_name"])
        const channels = records(found["channels"]).map((each) => String(each["channel_name"]))
        return (channels.length === 0 ? [undefined] : channels).map((channel) => ({ topic, channel }))
      })
  )

/** The statistics of a topic; `undefined` when it does not exist. https://nsq.io/components/nsqd.html#get-stats */
const stats = (
  base: HttpInterface,
  topic: string,
  timeout: number,
  clients = "false"
): Effect.Effect<Json | undefined, BrokerError.BrokerError> =>
  Effect.map(
    Http.request({ operation: "counts", queue: topic }, timeout, {
      base,
      path: `stats?${query({ format: "json", topic, include_clients: clients, include_mem: "false" })}`
    }),
    (json) => (Predicate.isReadonlyObject(json) ? records(json["topics"])[0] : undefined)
  )

/** The names of a topic's channels; `undefined` when the topic does not exist. */
export const channels = (
  base: HttpInterface,
  topic: string,
  timeout: number
): Effect.Effect<ReadonlyArray<string> | undefined, BrokerError.BrokerError> =>
  Effect.map(
    stats(base, topic, timeout),
    (found) => found && records(found["channels"]).map((each) => String(each["channel_name"]))
  )

/** The ids of a channel's consumers; empty when it does not exist. */
export const clients = (
  base: HttpInterface,
  { channel, topic }: Queue,
  timeout: number
): Effect.Effect<ReadonlyArray<string>, BrokerError.BrokerError> =>
  Effect.map(stats(base, topic, timeout, "true"), (found) => {
    const its = records(found?.["channels"]).find((each) => each["channel_name"] === channel)
    return records(its?.["clients"]).map((each) => String(each["client_id"]))
  })

/** The messages of a channel, and those of its topic. */
export const depths = (
  base: HttpInterface,
  { channel, topic }: Queue,
  timeout: number
): Effect.Effect<Depths, BrokerError.BrokerError> =>
  Effect.map(stats(base, topic, timeout), (found) => {
    const its = records(found?.["channels"]).find((each) => each["channel_name"] === channel)
    return {
      ready: (numberOf(found?.["depth"]) ?? 0) + (numberOf(its?.["depth"]) ?? 0),
      inFlight: numberOf(its?.["in_flight_count"]) ?? 0,
      delayed: numberOf(its?.["deferred_count"]) ?? 0,
      isPaused: found?.["paused"] === true || its?.["paused"] === true,
      // A topic that nobody consumes yet keeps its messages for the first channel.
      isMissing: found === undefined || (its === undefined && records(found["channels"]).length > 0),
      clients: numberOf(its?.["client_count"]) ?? 0
    }
  })

/**
 * Pauses a channel, or ends that; answers whether there is one. https://nsq.io/components/nsqd.html#post-channelpause
 */
export const setPaused = (
  base: HttpInterface,
  { channel, topic }: Queue,
  isPaused: boolean,
  timeout: number
): Effect.Effect<boolean, BrokerError.BrokerError> => {
  const operation = isPaused ? "pause" : "resume"
  const path = `channel/${isPaused ? "pause" : "unpause"}?${query({ topic, channel })}`
  return Effect.map(
    Http.request({ operation, queue: topic }, timeout, { base, method: "POST", path }),
    (answer) => answer !== Http.missing
  )
}

/** How long `empty` waits before it looks at a topic again, in milliseconds. */
const pause = 20

/**
 * Removes all messages of a channel, those in flight too. https://nsq.io/components/nsqd.html#post-channelempty
 *
 * Before that it waits until nsqd has moved the messages of the topic into its channels: in the topic they belong to
 * every channel.
 */
export const empty = (
  base: HttpInterface,
  queue: Queue,
  timeout: number
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { channel, topic } = queue
    const path = `channel/empty?${query({ topic, channel })}`
    const waiting = Effect.map(stats(base, topic, timeout), (found) => numberOf(found?.["depth"]) ?? 0)
    yield* create(base, queue, timeout)
    for (let waited = 0; waited < timeout && (yield* waiting) > 0; waited += pause) yield* Effect.sleep(pause)
    yield* Http.request({ operation: "purge", queue: topic }, timeout, { base, method: "POST", path })
  })
