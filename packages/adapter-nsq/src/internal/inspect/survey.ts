/** Asks every nsqd about a queue's topics and channels. Publishes and creates nothing. */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Plan } from "../../NsqPlan.ts"
import type { HttpInterface } from "../address.ts"
import type * as Driver from "../driver.ts"
import * as Connection from "../connect/connection.ts"
import * as Known from "../connect/known.ts"
import type { Node } from "../connect/nodes.ts"
import { queuesOf } from "../declare/objects.ts"
import * as Limits from "../limits.ts"
import * as Names from "../names.ts"
import type { Queue } from "../names.ts"
import * as NsqdHttp from "../nsqdHttp.ts"
import * as NsqdStats from "../nsqdStats.ts"
import * as Commands from "../publish/commands.ts"

/** The state of one nsqd. Without its HTTP interface, only version and limits are known. */
export interface NodeState {
  /** `host:port`. */
  readonly nsqd: string
  readonly version: string
  readonly limits: Limits.Limits
  /** How many messages it keeps in memory for each topic and each channel; `undefined` if not asked. */
  readonly memQueueSize: number | undefined
  /** The missing topics, and the missing channels as `topic/channel`; `undefined` if not asked. */
  readonly missing: ReadonlyArray<string> | undefined
  /** The commands that it refused, with its reasons; `undefined` if not asked. */
  readonly refusals: ReadonlyArray<string> | undefined
}

type Asking = Pick<Known.KnownDependencies, "driver" | "settings">

/** Why nsqd refuses a command; `undefined` if it accepts it. */
type Refusal = string | undefined

const ignoring: Driver.Listener = { message: () => {}, refused: () => {}, closed: () => {} }

const maySubscribe = ({ driver, settings }: Asking, { address, name }: Node, { channel, topic }: Queue) =>
  Connection.open({ operation: "verify", node: name }, settings, (signal) =>
    driver.subscribe(settings, address, { topic, channel, messageTimeout: undefined }, ignoring, signal)
  ).pipe(
    Effect.match({
      onSuccess: (connection): Refusal => {
        connection.destroy()
        return undefined
      },
      onFailure: ({ detail }): Refusal => `SUB ${topic} ${channel}: ${detail}`
    })
  )

/** Publishes an empty list of messages. nsqd always refuses it, but checks permissions first. */
const mayPublish = ({ driver, settings }: Asking, { address, name }: Node, { topic }: Queue) =>
  Effect.acquireUseRelease(
    Connection.open({ operation: "verify", node: name }, settings, (signal) =>
      driver.connectPublisher(settings, address, ignoring.closed, signal)
    ),
    (connection) =>
      Effect.callback<Refusal>((resume) =>
        connection.publish([
          {
            command: Commands.publish(topic, [], 0),
            done: (error) => {
              const text = error?.message ?? ""
              resume(Effect.succeed(/^E_(UNAUTHORIZED|AUTH)/.test(text) ? `MPUB ${topic}: ${text}` : undefined))
            }
          }
        ])
      ).pipe(Effect.timeout(settings.requestTimeout)),
    (connection) => Effect.sync(connection.destroy)
  ).pipe(Effect.catch((error) => Effect.succeed(`MPUB ${topic}: ${error.message}`)))

/** Asks an nsqd over HTTP, and checks permissions. */
const askHttp = Effect.fnUntraced(function* (
  http: HttpInterface,
  node: Node,
  asking: Asking,
  queues: ReadonlyArray<Queue>
) {
  const missing: Array<string> = []
  const refusals: Array<Refusal> = []
  for (const queue of queues) {
    const channels = yield* NsqdStats.channels(http, queue.topic, asking)
    if (channels === undefined) missing.push(queue.topic)
    if (channels?.includes(queue.channel) !== true) missing.push(Names.toText(queue))
    else refusals.push(yield* maySubscribe(asking, node, queue), yield* mayPublish(asking, node, queue))
  }
  return {
    configured: yield* NsqdHttp.configured(http, asking),
    memQueueSize: yield* NsqdHttp.memQueueSize(http, asking),
    missing: [...new Set(missing)],
    refusals: refusals.filter((refusal) => refusal !== undefined)
  }
})

const unasked = { configured: {}, memQueueSize: undefined, missing: undefined, refusals: undefined }

/** Asks one nsqd. */
const ask = (node: Node, plan: Plan, asking: Asking): Effect.Effect<NodeState, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { address, name } = node
    const { driver, settings } = asking
    const { destroy, identity } = yield* Connection.open({ operation: "verify", node: name }, settings, (signal) =>
      driver.connectPublisher(settings, address, ignoring.closed, signal)
    )
    destroy()
    const { http } = address
    const { configured, ...answers } = http === undefined ? unasked : yield* askHttp(http, node, asking, queuesOf(plan))
    return { nsqd: name, version: identity.version, limits: Limits.of(identity, configured, settings), ...answers }
  })

/** Returns the nsqd that may have the queue; if none, the first that nsqlookupd reports. */
export const nodesOf = (
  { retry, source }: Plan,
  dependencies: Known.KnownDependencies
): Effect.Effect<Pick<Known.Known, "missing"> & { readonly all: ReadonlyArray<Node> }, BrokerError.BrokerError> =>
  Effect.map(Known.of(dependencies, [source.topic, retry.topic]), ({ having, missing, named }) => {
    const all = [...new Set(having.flat())]
    return { all: all.length > 0 ? all : named.toSorted((a, b) => a.name.localeCompare(b.name)).slice(0, 1), missing }
  })

/** Asks every nsqd of a plan. Returns the states of those that answered, and the errors of the others. */
export const askAll = (plan: Plan, dependencies: Known.KnownDependencies) =>
  Effect.gen(function* () {
    const { all, missing } = yield* nodesOf(plan, dependencies)
    const one = (node: Node) => ask(node, plan, dependencies)
    const [states, failures] = yield* Effect.partition(all, one, { concurrency: 4 })
    return { states, failures: [...failures, ...missing] }
  })
