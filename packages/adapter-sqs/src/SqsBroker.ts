/**
 * Requeue on Amazon SQS, standard and FIFO queues.
 *
 * Delivery semantics: at least once. A copy (a long delay, a dead letter) is stored before its original is deleted: a crash
 * in between duplicates the message but never loses it. A delivery belongs to its consumer until the visibility timeout,
 * which is extended while a handler runs. SQS then redelivers an unsettled message.
 *
 * SQS has no connection, so `onReconnect` is never called. While SQS is unreachable, polls are repeated with growing
 * pauses; the consumer's health and one log line report the failure.
 */
import {
  type Adapter,
  Broker,
  BrokerError,
  type ConfigurationError,
  Connection,
  type Outgoing
} from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import * as Clock from "effect/Clock"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Admin from "./internal/inspect/admin.ts"
import * as Capabilities from "./internal/capabilities.ts"
import { reach } from "./internal/reach.ts"
import { connect } from "./internal/lazyClient.ts"
import * as Remembered from "./internal/consume/remembered.ts"
import * as Sources from "./internal/consume/sources.ts"
import { subscribe } from "./internal/consume/subscribe.ts"
import { operations } from "./internal/inspect/operations.ts"
import * as Queues from "./internal/declare/declare.ts"
import { originals } from "./internal/consume/originals.ts"
import * as Publisher from "./internal/publish/publisher.ts"
import { decode, type Options, type Settings } from "./SqsOptions.ts"

const noDelay = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "sqs",
    operation: "publish",
    queue,
    reason: "Unsupported",
    detail: "a FIFO queue cannot delay single messages",
    remedy: "Send without a delay, or set DelaySeconds of the queue"
  })

const build = Effect.fnUntraced(function* (settings: Settings) {
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context())
  const fork = (effect: Effect.Effect<unknown>): void => void run(effect)
  const now = () => clock.currentTimeMillisUnsafe()
  // The state is whether the last call reached SQS, and `up` before the first.
  const connection = Connection.track("up", now)
  const client = yield* connect(settings, connection)
  const queues = Queues.make(client, settings)
  const publisher = Publisher.make({ client, queues, fork })
  const remembered = Remembered.byQueue()
  const admin = Admin.make({ client, settings, queues, sources: Sources.make(client, now), fork, now })

  /** Refuses delays on FIFO queues, which would deliver the message at once. */
  const refusal = Effect.fnUntraced(function* (messages: ReadonlyArray<Outgoing.Outgoing>) {
    for (const { delay, queue } of messages) {
      if (delay > 0 && (yield* queues.find(queue)).fifo) return yield* noDelay(queue)
    }
  })

  const service: Broker.Service = {
    capabilities: Capabilities.make(settings),
    connection: connection.current,
    reach: reach(client),
    publish: Effect.fnUntraced(function* (messages) {
      yield* refusal(messages)
      const results = yield* publisher.publish(
        messages.map((message) => ({ message, original: originals.get(message.body) }))
      )
      const failed = BrokerError.ofBatch(results)
      if (failed !== undefined) return yield* failed
    }),
    subscribe: (options) =>
      subscribe(options, {
        client,
        settings,
        queues,
        publisher,
        remembered,
        countInFlight: (queue) => Effect.map(admin.counts(queue), ({ inFlight = 0 }) => inFlight)
      }),
    admin
  }
  return service
})

/**
 * Makes a broker that closes with the scope.
 *
 * When to use: in an Effect program that needs the service itself; otherwise use {@link layer}.
 *
 * Fails with `ConfigurationError` when an option is wrong. It does not call SQS. So wrong credentials, a missing permission
 * or a region without the queue fail the first operation, such as a send or the start of a consumer. If `connect` waits for
 * the broker, they fail `connect`.
 *
 * @example
 * ```ts
 * import { SqsBroker } from "@requeue/adapter-sqs"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.scoped(
 *   Effect.map(SqsBroker.make({ url: "sqs://eu-west-1" }), ({ capabilities }) => capabilities.sendDelay.native)
 * )
 * ```
 */
export const make = (
  options: Options
): Effect.Effect<Broker.Service, BrokerError.BrokerError | ConfigurationError.ConfigurationError, Scope.Scope> =>
  Effect.flatMap(Effect.fromResult(decode(options)), build)

/**
 * Makes a Layer of the broker. It fails as {@link make} does.
 *
 * @example
 * ```ts
 * import { SqsBroker } from "@requeue/adapter-sqs"
 *
 * const layer = SqsBroker.layer({ url: "sqs://eu-west-1", visibilityTimeout: 60_000 })
 * ```
 */
export const layer = (
  options: Options
): Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Layer.effect(Broker.Broker, make(options))

/**
 * Makes a Layer of the broker whose options come from Effect's Config.
 *
 * @example
 * ```ts
 * import { SqsBroker } from "@requeue/adapter-sqs"
 * import * as Config from "effect/Config"
 *
 * const layer = SqsBroker.layerConfig({ url: Config.Redacted("SQS_URL") })
 * ```
 */
export const layerConfig = (
  options: Config.Wrap<Omit<Options, "client" | "credentials" | "endpoint" | "requestHandler">>
): Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigurationError.ConfigurationError | Config.ConfigError> =>
  Layer.effect(Broker.Broker, AdapterOptions.fromConfig(options, make))

/**
 * Serves `sqs:` URLs: `sqs://eu-west-1`, `sqs://eu-west-1/123456789012?visibilityTimeout=60000`, or
 * `sqs://key:secret@localhost:9324?region=eu-west-1`. The query accepts every option except `tags`; times are in
 * milliseconds.
 */
export const adapter: Adapter.Adapter = {
  schemes: ["sqs"],
  layer: (url, options) => layer({ ...options, url }),
  operations
}
