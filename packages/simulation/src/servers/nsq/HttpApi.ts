/**
 * The HTTP interface of nsqd, as far as the adapter and operators use it.
 *
 * | rule | source: https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/http.go |
 * | --- | --- |
 * | a missing topic or channel is a 404 with `TOPIC_NOT_FOUND` or `CHANNEL_NOT_FOUND`; statistics leave it out instead | `getExistingTopicFromQuery`, `GetStats` in stats.go |
 * | a channel is created in an existing topic only | `doCreateChannel` |
 * | `topics` is null without topics | `doStats` |
 * | the identity consists of host name, addresses and start, and is equal at all addresses | `doInfo` |
 * | the date is that of nsqd's clock, in whole seconds | net/http |
 */
import { configured } from "./Flags.ts"
import type { Statistics } from "./Channel.ts"
import * as Names from "./Names.ts"
import type { Nsqd } from "./Nsqd.ts"
import type { Topic } from "./Topic.ts"

/** A response. `date` is in milliseconds since the epoch, without the fraction of a second. */
export interface Response {
  readonly status: number
  readonly body: string
  readonly date: number | undefined
}

type Result = Pick<Response, "status" | "body">

const ok: Result = { status: 200, body: "" }
const json = (value: unknown): Result => ({ status: 200, body: JSON.stringify(value) })
export const failed = (status: number, message: string): Result => ({ status, body: JSON.stringify({ message }) })

const channelOf = (
  { clients, deferred, depth, inFlight, isPaused, messages, name, onDisk, requeues, timeouts }: Statistics,
  withClients: boolean
) => ({
  channel_name: name,
  depth,
  backend_depth: onDisk,
  in_flight_count: inFlight,
  deferred_count: deferred,
  message_count: messages,
  requeue_count: requeues,
  timeout_count: timeouts,
  client_count: clients.length,
  clients: withClients ? clients.map(({ clientId }) => ({ client_id: clientId })) : [],
  paused: isPaused
})

const topicOf = (topic: Topic, channel: string | null, withClients: boolean) => {
  const { depth, isPaused, messages, onDisk } = topic.statistics()
  const channels = topic.channels().map((each) => channelOf(each.statistics(), withClients))
  return {
    topic_name: topic.name,
    channels: channels.filter(({ channel_name }) => channel === null || channel_name === channel),
    depth,
    backend_depth: onDisk,
    message_count: messages,
    paused: isPaused
  }
}

const stats = (nsqd: Nsqd, query: URLSearchParams): Result => {
  const wanted = query.get("topic")
  const topics = nsqd.topics().filter(({ name }) => wanted === null || name === wanted)
  const withClients = query.get("include_clients") !== "false"
  return json({
    version: nsqd.version,
    health: "OK",
    start_time: Math.floor(nsqd.startedAt() / 1000),
    topics: topics.length === 0 ? null : topics.map((each) => topicOf(each, query.get("channel"), withClients)),
    producers: []
  })
}

const info = ({ name, startedAt, version }: Nsqd): Result =>
  json({
    version,
    broadcast_address: name,
    hostname: name,
    http_port: 4151,
    tcp_port: 4150,
    start_time: Math.floor(startedAt() / 1000)
  })

const config = ({ flags }: Nsqd, option: string): Result => {
  const value = configured(flags)[option]
  return value === undefined ? failed(400, "INVALID_OPTION") : json(value)
}

/** Commands on an existing topic. */
const onTopic = (nsqd: Nsqd, topic: Topic, action: string): Result => {
  if (action === "delete") nsqd.removeTopic(topic.name)
  else if (action === "empty") topic.empty()
  else topic.pause(action === "pause")
  return ok
}

/** Commands on an existing channel. */
const onChannel = (topic: Topic, name: string, action: string): Result => {
  const channel = topic.existing(name)
  if (channel === undefined) return failed(404, "CHANNEL_NOT_FOUND")
  if (action === "delete") topic.removeChannel(name)
  else if (action === "empty") channel.empty()
  else channel.pause(action === "pause")
  return ok
}

const act = (nsqd: Nsqd, kind: string, action: string, query: URLSearchParams): Result => {
  const topicName = query.get("topic")
  if (topicName === null) return failed(400, "MISSING_ARG_TOPIC")
  if (kind === "topic" && action === "create") {
    if (!Names.isValid(topicName)) return failed(400, "INVALID_TOPIC")
    nsqd.topic(topicName)
    return ok
  }
  if (!Names.isValid(topicName)) return failed(400, kind === "topic" ? "INVALID_TOPIC" : "INVALID_ARG_TOPIC")
  const channelName = query.get("channel")
  if (kind === "channel" && channelName === null) return failed(400, "MISSING_ARG_CHANNEL")
  if (channelName !== null && !Names.isValid(channelName)) return failed(400, "INVALID_ARG_CHANNEL")
  const topic = nsqd.existing(topicName)
  if (topic === undefined) return failed(404, "TOPIC_NOT_FOUND")
  if (kind === "topic") return onTopic(nsqd, topic, action)
  if (action !== "create") return onChannel(topic, channelName!, action)
  topic.channel(channelName!)
  return ok
}

const answer = (nsqd: Nsqd, method: string, { pathname, searchParams: query }: URL): Result => {
  const [, kind = "", action = ""] = pathname.split("/")
  if (method === "GET" && kind === "stats") return stats(nsqd, query)
  if (method === "GET" && kind === "info") return info(nsqd)
  if (method === "GET" && kind === "config") return config(nsqd, action)
  if (method === "POST" && /^(topic|channel)$/.test(kind) && /^(create|delete|empty|pause|unpause)$/.test(action)) {
    return act(nsqd, kind, action, query)
  }
  return failed(404, "NOT_FOUND")
}

/** Results a request for a path with its query. */
export const request = (nsqd: Nsqd, method: string, path: string): Response => ({
  ...answer(nsqd, method, new URL(path, "http://nsqd")),
  date: Math.floor(nsqd.host.now() / 1000) * 1000
})
