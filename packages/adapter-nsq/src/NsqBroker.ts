/**
 * Requeue on NSQ 1.x.
 *
 * Delivery semantics: at least once, as long as nsqd itself ends in order. A retry copy or dead letter is stored before
 * its original is finished. An nsqd that is killed loses what it had in memory, in flight or deferred; the README says
 * what can be done about that.
 */
import {
  type Adapter,
  Broker,
  BrokerError,
  ConfigurationError,
  Connection,
  type Outgoing
} from "@requeue/core/adapter-kit"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Admin from "./internal/inspect/admin.ts"
import * as Capabilities from "./internal/capabilities.ts"
import * as Consumer from "./internal/consume/subscribe.ts"
import * as Lookup from "./internal/connect/lookup.ts"
import * as Names from "./internal/names.ts"
import * as Nodes from "./internal/connect/nodes.ts"
import { operations } from "./internal/inspect/operations.ts"
import * as Pool from "./internal/connect/publishing.ts"
import type { Presence } from "./internal/connect/connectionCount.ts"
import * as Sender from "./internal/publish/sender.ts"
import { decode, type Options, type Settings } from "./NsqOptions.ts"
import * as Plan from "./NsqPlan.ts"

/** What is redriven is for one channel: from the topic, all others would get it again. */
const placed = (target: Names.Queue, { metadata }: Outgoing.Outgoing) => {
  const isCopy = metadata.redrives > 0 && !target.isOwn
  return { target: isCopy ? Names.retry(target) : target, isCopy }
}

const build = Effect.fnUntraced(function* (settings: Settings) {
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context())
  const now = () => clock.currentTimeMillisUnsafe()
  const fork = (effect: Effect.Effect<unknown>) => void run(effect)
  const nodes = yield* Nodes.make(settings)
  const lookup = Lookup.make(settings)
  const pool = yield* Pool.make(settings, nodes, lookup)
  const sender = yield* Sender.make({ settings, nodes, pool, now })
  const capabilities = Capabilities.make(settings, nodes.limits())
  const presences = new Set<Presence>()
  const messageTimeout = nodes.limits().msgTimeout
  const environment = { settings, nodes, lookup, pool, sender, messageTimeout, now, fork, presences }

  const service: Broker.Service = {
    capabilities,
    connection: () => Connection.all(pool.state(), ...[...presences].map(({ state }) => state())),
    publish: (messages) =>
      Effect.flatMap(
        Effect.forEach(messages, (message) =>
          Effect.map(Sender.target(message.queue, "publish", settings), (target) => ({
            message,
            ...placed(target, message)
          }))
        ),
        (items) => sender.send(items, { count: settings.publishTo })
      ),
    subscribe: (options) =>
      Effect.gen(function* () {
        const { deadLetterQueues, queue, retry } = options
        const plan = Plan.make({ queue, retry, deadLetterQueues }, settings, nodes.limits().maxReqTimeout)
        if (plan instanceof ConfigurationError.ConfigurationError) return yield* BrokerError.ofPlan("nsq", plan)
        for (const note of plan.notes) yield* Effect.annotateLogs(Effect.logInfo(note), { queue })
        return yield* Consumer.subscribe(options, plan, environment)
      }),
    admin: Admin.make(environment)
  }
  return service
})

/**
 * A broker that lives as long as the scope.
 *
 * Connects at once: a wrong option, address or secret, and an nsqd that cannot be asked for its limits, are errors now,
 * each with what to do about it.
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

/** The broker as a Layer. */
export const layer = (
  options: Options = {}
): Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Layer.effect(Broker.Broker, make(options))

/** The broker as a Layer whose options come from Effect's Config. */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigurationError.ConfigurationError | Config.ConfigError> =>
  Layer.effect(Broker.Broker, Effect.flatMap(Config.unwrap(options), make))

/**
 * Serves `nsq:` URLs: `nsq://:secret@host:4150?lookupd=host:4161&channel=billing`. Every option but `tls` material can
 * stand in the query; times are in milliseconds.
 */
export const adapter: Adapter.Adapter = {
  schemes: ["nsq"],
  layer: (url, options) => layer({ ...options, url }),
  operations
}
