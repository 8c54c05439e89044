/**
 * Requeue on NSQ 1.x.
 *
 * Delivery semantics: at least once, while nsqd itself shuts down cleanly. A retry copy or dead letter is stored before its
 * original is finished. A killed nsqd loses its messages in memory, in flight and deferred; docs/nsq.md describes how to
 * lose fewer messages.
 */
import {
  type Adapter,
  Broker,
  BrokerError,
  ConfigurationError,
  Connection,
  Direct,
  Log,
  type Outgoing,
  ShortList
} from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import * as Clock from "effect/Clock"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Capabilities from "./internal/capabilities.ts"
import type { ConnectionCount } from "./internal/connect/connectionCount.ts"
import * as Known from "./internal/connect/known.ts"
import * as Publishing from "./internal/connect/publishing.ts"
import { subscribe } from "./internal/consume/subscribe.ts"
import * as Declare from "./internal/declare/declare.ts"
import * as Admin from "./internal/inspect/admin.ts"
import { operations } from "./internal/inspect/operations.ts"
import * as Names from "./internal/names.ts"
import * as Sender from "./internal/publish/sender.ts"
import { type Item, SentItem } from "./internal/publish/toPublication.ts"
import { decode, type Options, type Settings } from "./NsqOptions.ts"
import * as Plan from "./NsqPlan.ts"

/**
 * Returns the message with its target. A redriven message goes to the retry topic: in the source topic, every channel
 * would receive it.
 */
const placed = (target: Names.Queue, message: Outgoing.Outgoing): Item => {
  const isCopy = message.metadata.redrives > 0 && !target.isOwn
  return new SentItem(message, isCopy ? Names.retry(target) : target, isCopy)
}

const mustExist = ({ create }: Outgoing.Outgoing): boolean => create === false

const missing = (queue: string): BrokerError.BrokerError => {
  const error = {
    broker: "nsq",
    operation: "publish",
    reason: "QueueMissing",
    detail: "there is no such queue"
  } as const
  return new BrokerError.BrokerError({ ...error, queue })
}

/**
 * Fails when a queue is missing. nsqd creates the topic of any publish, so the queues are checked first. If nsqd does
 * not answer, the queue counts as present.
 */
const present = (
  { counts }: Pick<Broker.Service["admin"], "counts">,
  queues: ReadonlySet<string>
): Effect.Effect<void, BrokerError.BrokerError> => {
  const check = (queue: string) =>
    Effect.flatMap(
      Effect.orElseSucceed(counts(queue), () => undefined),
      (counted) => (counted?.isMissing === true ? Effect.fail(missing(queue)) : Effect.void)
    )
  return Effect.forEach(queues, check, { discard: true })
}

const build = Effect.fnUntraced(function* (settings: Settings) {
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context())
  const now = () => clock.currentTimeMillisUnsafe()
  const fork = (effect: Effect.Effect<unknown>) => void run(effect)
  const known = yield* Known.make(settings)
  const { driver, elapsed, lookup, nodes } = known
  const publishing = yield* Publishing.make(settings, driver, nodes, lookup)
  const declare = yield* Declare.make(settings, driver)
  const sender = Sender.make({ settings, nodes, publishing, declare, now, elapsed, fork: run })
  const placement = { count: settings.publishTo }
  const capabilities = Capabilities.make(settings, nodes.limits())
  const connectionCounts = new Set<ConnectionCount>()
  const messageTimeout = nodes.limits().msgTimeout
  const consuming = { ...known, messageTimeout, now, fork }

  const admin = Admin.make(consuming)
  const send: Broker.Service["publish"] = (messages) =>
    Direct.make((onExit) => {
      const items = ShortList.of<Item>()
      for (const message of messages) {
        const target = Sender.target(message.queue, "publish", settings)
        if (target instanceof BrokerError.BrokerError) return Direct.ended(onExit, Exit.fail(target))
        items.push(placed(target, message))
      }
      return sender.begin(items, placement, onExit)
    })

  const service: Broker.Service = {
    capabilities,
    connection: () => Connection.all(publishing.state(), ...[...connectionCounts].map(({ state }) => state())),
    publish: (messages) => {
      if (!messages.some(mustExist)) return send(messages)
      const existing = new Set(messages.filter(mustExist).map(({ queue }) => queue))
      return Effect.andThen(present(admin, existing), send(messages))
    },
    subscribe: (options) =>
      Effect.gen(function* () {
        const { deadLetterQueues, queue, retry } = options
        const plan = Plan.make({ queue, retry, deadLetterQueues }, settings, nodes.limits().maxReqTimeout)
        if (plan instanceof ConfigurationError.ConfigurationError) return yield* BrokerError.ofPlan("nsq", plan)
        for (const note of plan.notes) yield* Log.info(note, { queue })
        return yield* subscribe(options, plan, { ...consuming, publishing, declare, sender, connectionCounts })
      }),
    admin
  }
  return service
})

/**
 * Makes a broker that closes with the scope.
 *
 * Connects immediately. Fails with a remedy when an option, address or secret is wrong, or when nsqd does not report
 * its limits.
 *
 * @example
 * ```ts
 * import { NsqBroker } from "@requeue/adapter-nsq"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.scoped(
 *   Effect.map(NsqBroker.make({ url: "nsq://localhost:4150" }), ({ capabilities }) => capabilities.lease)
 * )
 * ```
 */
export const make = (
  options: Options = {}
): Effect.Effect<Broker.Service, BrokerError.BrokerError | ConfigurationError.ConfigurationError, Scope.Scope> =>
  Effect.flatMap(Effect.fromResult(decode(options)), build)

/** Makes a Layer of the broker. */
export const layer = (
  options: Options = {}
): Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Layer.effect(Broker.Broker, make(options))

/** Makes a Layer of the broker whose options come from Effect's Config. */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigurationError.ConfigurationError | Config.ConfigError> =>
  Layer.effect(Broker.Broker, AdapterOptions.fromConfig(options, make))

/**
 * Serves `nsq:` URLs: `nsq://:secret@host:4150?tls=true&lookupd=host:4161&channel=billing`. The query accepts every
 * option except certificates and functions; times are in milliseconds.
 */
export const adapter: Adapter.Adapter = {
  schemes: ["nsq"],
  layer: (url, options) => layer({ ...options, url }),
  operations
}
