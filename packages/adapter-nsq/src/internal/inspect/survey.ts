/** What nsqd say of a queue's topics and channels. Publishes nothing, and makes nothing that is not there. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Settings } from "../../NsqOptions.ts"
import type { Plan } from "../../NsqPlan.ts"
import * as Client from "../client.ts"
import * as Limits from "../limits.ts"
import { opening } from "../connect/connection.ts"
import type { Lookup } from "../connect/lookup.ts"
import * as Names from "../names.ts"
import type { Queue } from "../names.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import * as Nsqd from "./stats.ts"
import { nobody } from "../connect/publishing.ts"

/** What was learned of one nsqd. Without its HTTP interface, that is its version and its limits. */
export interface Facts {
  readonly nsqd: string
  readonly version: string
  readonly limits: Limits.Limits
  /** Messages that it keeps in memory per topic and channel; `undefined` when it was not asked. */
  readonly memQueueSize: number | undefined
  /** Topics, and channels as `topic/channel`, that it does not have; `undefined` when it was not asked. */
  readonly missing: ReadonlyArray<string> | undefined
  /** What it refused, in its own words; `undefined` when it was not asked, because to ask would make topics. */
  readonly refusals: ReadonlyArray<string> | undefined
}

/** Every topic and channel of a plan. */
export const queuesOf = ({ deadLetters, retry, source }: Plan): ReadonlyArray<Queue> => [source, retry, ...deadLetters]

/** What nsqd says when it is asked for what a consumer needs, in its own words; `undefined`: it lets us. */
type Refusal = string | undefined

const silent = { message: () => {}, refused: () => {}, closed: () => {} }

const maySubscribe = (settings: Settings, { address, name }: Node, { channel, topic }: Queue) =>
  opening({ operation: "verify", node: name }, settings, (signal) =>
    Client.subscribe(settings, address, { topic, channel, messageTimeout: undefined }, silent, signal)
  ).pipe(
    Effect.match({
      onSuccess: (connection): Refusal => {
        connection.destroy()
        return undefined
      },
      onFailure: ({ detail }): Refusal => `SUB ${topic} ${channel}: ${detail}`
    })
  )

/** nsqd looks at permissions before it looks at messages: a publish of none is refused for the one reason or the other. */
const mayPublish = (settings: Settings, { address, name }: Node, { topic }: Queue) =>
  Effect.acquireUseRelease(
    opening({ operation: "verify", node: name }, settings, (signal) =>
      Client.publisher(settings, address, silent.closed, signal)
    ),
    (connection) =>
      Effect.callback<Refusal>((resume) =>
        connection.publish(topic, [], 0, (error) => {
          const text = error?.message ?? ""
          resume(Effect.succeed(/^E_(UNAUTHORIZED|AUTH)/.test(text) ? `MPUB ${topic}: ${text}` : undefined))
        })
      ).pipe(Effect.timeout(settings.requestTimeout)),
    (connection) => Effect.sync(connection.destroy)
  ).pipe(Effect.catch((error) => Effect.succeed(`MPUB ${topic}: ${error.message}`)))

/** What the HTTP interface tells. */
const asked = Effect.fnUntraced(function* (http: string, node: Node, settings: Settings, queues: ReadonlyArray<Queue>) {
  const { requestTimeout } = settings
  const missing: Array<string> = []
  const refusals: Array<Refusal> = []
  for (const queue of queues) {
    const channels = yield* Nsqd.channels(http, queue.topic, requestTimeout)
    if (channels === undefined) missing.push(queue.topic)
    if (channels?.includes(queue.channel) !== true) missing.push(Names.toText(queue))
    else refusals.push(yield* maySubscribe(settings, node, queue), yield* mayPublish(settings, node, queue))
  }
  return {
    configured: yield* Nsqd.configured(http, requestTimeout),
    memQueueSize: yield* Nsqd.memQueueSize(http, requestTimeout),
    missing: [...new Set(missing)],
    refusals: refusals.filter((refusal) => refusal !== undefined)
  }
})

const unasked = { configured: {}, memQueueSize: undefined, missing: undefined, refusals: undefined }

/** What one nsqd says. */
const ask = (node: Node, plan: Plan, settings: Settings): Effect.Effect<Facts, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { address, name } = node
    const { destroy, identity } = yield* opening({ operation: "verify", node: name }, settings, (signal) =>
      Client.publisher(settings, address, silent.closed, signal)
    )
    destroy()
    const { http } = address
    const { configured, ...told } = http === undefined ? unasked : yield* asked(http, node, settings, queuesOf(plan))
    return { nsqd: name, version: identity.version, limits: Limits.of(identity, configured, settings), ...told }
  })

/** The nsqd that are given or have the queue; when there are none, the one that nsqlookupd names first. */
export const nodesOf = (
  { retry, source }: Plan,
  settings: Settings,
  nodes: Nodes,
  lookup: Lookup
): Effect.Effect<ReadonlyArray<Node>, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const found = yield* Effect.forEach([source, retry], ({ topic }) => lookup.topic(topic))
    const all = [...new Set([...nodes.given, ...found.flatMap((addresses) => addresses?.map(nodes.at) ?? [])])]
    if (all.length > 0) return all
    const others = (yield* lookup.all) ?? []
    const [first] = others.map(nodes.at).toSorted((a, b) => a.name.localeCompare(b.name))
    return first === undefined ? yield* nobody(settings) : [first]
  })

/** What all of them say, and why those that say nothing do not. */
export const askAll = (plan: Plan, settings: Settings, nodes: Nodes, lookup: Lookup) =>
  Effect.gen(function* () {
    const all = yield* nodesOf(plan, settings, nodes, lookup)
    const [facts, failures] = yield* Effect.partition(all, (node) => ask(node, plan, settings), { concurrency: 4 })
    return { facts, failures }
  })
