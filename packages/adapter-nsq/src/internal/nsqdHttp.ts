/** The HTTP interface of one nsqd: `base` is its address. */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { HttpInterface } from "./address.ts"
import * as Http from "./http.ts"
import type { Configured } from "./limits.ts"
import type { Queue } from "./names.ts"
import * as NsqdStats from "./nsqdStats.ts"

/** Returns the limits that `IDENTIFY` does not report. https://nsq.io/components/nsqd.html#get-configoption */
export const configured = (
  base: HttpInterface,
  access: Http.Access
): Effect.Effect<Configured, BrokerError.BrokerError> => {
  const ask = (option: string) =>
    Effect.map(Http.request({ operation: "connect" }, access, { base, path: `config/${option}` }), Http.numberOf)
  return Effect.map(
    Effect.all([ask("max_req_timeout"), ask("max_msg_size"), ask("max_body_size")], { concurrency: "unbounded" }),
    ([nanos, maxMsgSize, maxBodySize]) => ({
      ...(nanos === undefined ? {} : { maxReqTimeout: Math.floor(nanos / 1e6) }),
      ...(maxMsgSize === undefined ? {} : { maxMsgSize }),
      ...(maxBodySize === undefined ? {} : { maxBodySize })
    })
  )
}

/** The identity and the time of an nsqd; `undefined` if it does not report them. */
export interface Info {
  /** Equal for all addresses of one nsqd, and unique to it. */
  readonly identity: string | undefined
  /** Its time in milliseconds since the epoch, without the fraction of a second. */
  readonly date: number | undefined
}

/** Requests the identity and time of an nsqd. https://nsq.io/components/nsqd.html#get-info */
export const info = (base: HttpInterface, access: Http.Access): Effect.Effect<Info> =>
  Http.response({ operation: "connect" }, access, { base, path: "info" }).pipe(
    Effect.map(({ date, json }) => ({ identity: identityIn(json), date })),
    Effect.orElseSucceed(() => ({ identity: undefined, date: undefined }))
  )

const identityIn = (json: unknown): string | undefined =>
  Predicate.isReadonlyObject(json) && typeof json["hostname"] === "string"
    ? JSON.stringify(["hostname", "broadcast_address", "tcp_port", "http_port", "start_time"].map((key) => json[key]))
    : undefined

/** Returns how many messages nsqd keeps in memory for each topic and each channel. */
export const memQueueSize = (
  base: HttpInterface,
  access: Http.Access
): Effect.Effect<number | undefined, BrokerError.BrokerError> =>
  Effect.map(Http.request({ operation: "verify" }, access, { base, path: "config/mem_queue_size" }), Http.numberOf)

/** Creates a topic and its channel if they are missing. https://nsq.io/components/nsqd.html#post-channelcreate */
export const create = (
  base: HttpInterface,
  { channel, topic }: Queue,
  access: Http.Access
): Effect.Effect<void, BrokerError.BrokerError> => {
  const post = (path: string) =>
    Http.request({ operation: "create", queue: topic }, access, { base, method: "POST", path })
  return Effect.asVoid(
    Effect.andThen(
      post(`topic/create?${Http.query({ topic })}`),
      post(`channel/create?${Http.query({ topic, channel })}`)
    )
  )
}

/** Pauses or resumes a channel. Returns whether it exists. https://nsq.io/components/nsqd.html#post-channelpause */
export const setPaused = (
  base: HttpInterface,
  { channel, topic }: Queue,
  isPaused: boolean,
  access: Http.Access
): Effect.Effect<boolean, BrokerError.BrokerError> => {
  const operation = isPaused ? "pause" : "resume"
  const path = `channel/${isPaused ? "pause" : "unpause"}?${Http.query({ topic, channel })}`
  return Effect.map(
    Http.request({ operation, queue: topic }, access, { base, method: "POST", path }),
    (answer) => answer !== Http.missing
  )
}

/** Pause between `empty`'s checks of a topic, in milliseconds. */
const pause = 20

/**
 * Removes all messages of a channel, those in flight too. https://nsq.io/components/nsqd.html#post-channelempty
 *
 * First waits until nsqd has moved the topic's messages into its channels: messages in the topic belong to every
 * channel.
 */
export const empty = (
  base: HttpInterface,
  queue: Queue,
  access: Http.Access
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { channel, topic } = queue
    const path = `channel/empty?${Http.query({ topic, channel })}`
    const waiting = NsqdStats.waiting(base, topic, access)
    yield* create(base, queue, access)
    for (let waited = 0; waited < access.settings.requestTimeout && (yield* waiting) > 0; waited += pause)
      yield* Effect.sleep(pause)
    yield* Http.request({ operation: "purge", queue: topic }, access, { base, method: "POST", path })
  })
