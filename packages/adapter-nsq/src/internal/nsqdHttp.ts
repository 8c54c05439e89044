/** What is asked of one nsqd over HTTP. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Http from "../http.ts"
import type { Configured } from "../limits.ts"
import type { Queue } from "../names.ts"

/** Numbers of one channel, and what waits in its topic for any channel. */
export interface Depths {
  readonly ready: number
  readonly inFlight: number
  readonly delayed: number
}

const none: Depths = { ready: 0, inFlight: 0, delayed: 0 }

export const sum = (all: ReadonlyArray<Depths>): Depths =>
  all.reduce(
    (a, b) => ({ ready: a.ready + b.ready, inFlight: a.inFlight + b.inFlight, delayed: a.delayed + b.delayed }),
    none
  )

const query = (params: Readonly<Record<string, string>>): string => new URLSearchParams(params).toString()

const number = (value: unknown): number => (typeof value === "number" ? value : 0)

/** The caps that `IDENTIFY` does not tell. https://nsq.io/components/nsqd.html#get-configoption */
export const configured = (base: string, millis: number): Effect.Effect<Configured, BrokerError.BrokerError> => {
  const ask = (option: string) =>
    Effect.map(Http.request({ operation: "connect" }, millis, { base, path: `config/${option}` }), (value) =>
      typeof value === "number" ? value : undefined
    )
  return Effect.map(
    Effect.all([ask("max_req_timeout"), ask("max_msg_size"), ask("max_body_size")], { concurrency: "unbounded" }),
    ([nanos, maxMsgSize, maxBodySize]) => ({
      ...(nanos === undefined ? {} : { maxReqTimeout: Math.floor(nanos / 1e6) }),
      ...(maxMsgSize === undefined ? {} : { maxMsgSize }),
      ...(maxBodySize === undefined ? {} : { maxBodySize })
    })
  )
}

/** Messages that are kept in memory, for each topic and channel. */
export const memQueueSize = (
  base: string,
  millis: number
): Effect.Effect<number | undefined, BrokerError.BrokerError> =>
  Effect.map(Http.request({ operation: "verify" }, millis, { base, path: "config/mem_queue_size" }), (value) =>
    typeof value === "number" ? value : undefined
  )

/** Makes topic and channel, unless they are there. */
export const create = (
  base: string,
  { channel, topic }: Queue,
  millis: number
): Effect.Effect<void, BrokerError.BrokerError> => {
  const post = (path: string) =>
    Http.request({ operation: "create", queue: topic }, millis, { base, method: "POST", path })
  return Effect.asVoid(
    Effect.andThen(post(`topic/create?${query({ topic })}`), post(`channel/create?${query({ topic, channel })}`))
  )
}

const stats = (base: string, topic: string, millis: number): Effect.Effect<unknown, BrokerError.BrokerError> =>
  Http.request({ operation: "counts", queue: topic }, millis, {
    base,
    path: `stats?${query({ format: "json", topic, include_clients: "false", include_mem: "false" })}`
  })

/** Between two looks, in milliseconds. */
const pause = 20

/** What waits in the topic for any channel. */
const topicDepth = (base: string, topic: string, millis: number): Effect.Effect<number, BrokerError.BrokerError> =>
  Effect.map(stats(base, topic, millis), (json) => number(topicOf(json)?.["depth"]))

/** The topic's channels; `undefined` when the topic is not there. */
export const channels = (
  base: string,
  topic: string,
  millis: number
): Effect.Effect<ReadonlyArray<string> | undefined, BrokerError.BrokerError> =>
  Effect.map(stats(base, topic, millis), (json) => {
    const found = topicOf(json)
    return found && records(found["channels"]).map((one) => String(one["channel_name"]))
  })

/** What the channel holds. https://nsq.io/components/nsqd.html#get-stats */
export const depths = (
  base: string,
  { channel, topic }: Queue,
  millis: number
): Effect.Effect<Depths, BrokerError.BrokerError> =>
  Effect.map(stats(base, topic, millis), (json) => toDepths(json, channel))

const records = (value: unknown): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  Array.isArray(value) ? (value as ReadonlyArray<Readonly<Record<string, unknown>>>) : []

const topicOf = (json: unknown) => records((json as Readonly<Record<string, unknown>> | undefined)?.["topics"])[0]

const toDepths = (json: unknown, channel: string): Depths => {
  const topic = topicOf(json)
  const found = records(topic?.["channels"]).find((one) => one["channel_name"] === channel)
  return {
    ready: number(topic?.["depth"]) + number(found?.["depth"]),
    inFlight: number(found?.["in_flight_count"]),
    delayed: number(found?.["deferred_count"])
  }
}

/**
 * Removes all that the channel holds, in flight too. https://nsq.io/components/nsqd.html#post-channelempty
 *
 * What waits in the topic goes into its channels first: there may be others' among them.
 */
export const empty = (base: string, queue: Queue, millis: number): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { channel, topic } = queue
    const path = `channel/empty?${query({ topic, channel })}`
    yield* create(base, queue, millis)
    for (let waited = 0; waited < millis && (yield* topicDepth(base, topic, millis)) > 0; waited += pause) {
      yield* Effect.sleep(pause)
    }
    yield* Http.request({ operation: "purge", queue: topic }, millis, { base, method: "POST", path })
  })
