/**
 * Requeue on RabbitMQ 3.10 and later.
 *
 * Delivery is at least once. A retry or a dead letter is published, routed and confirmed before its original is acknowledged: a
 * crash in between duplicates a message and never loses one. Connections are reopened automatically. A delivery is settled on
 * the channel that delivered it, or not at all.
 */
import {
  type Adapter,
  Broker,
  BrokerError,
  ConfigurationError,
  Connection,
  Direct,
  Log,
  RetryPolicy
} from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import * as Clock from "effect/Clock"
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Capabilities from "./internal/capabilities.ts"
import * as Connect from "./internal/connect/connection.ts"
import * as Originals from "./internal/consume/originals.ts"
import { foundOut } from "./internal/consume/sessions.ts"
import { subscribe } from "./internal/consume/subscribe.ts"
import * as Declarer from "./internal/declare/declare.ts"
import * as Admin from "./internal/inspect/admin.ts"
import * as Found from "./internal/inspect/found.ts"
import * as LeftBehind from "./internal/inspect/leftBehind.ts"
import * as Policies from "./internal/inspect/policies.ts"
import * as Remembered from "./internal/inspect/remembered.ts"
import * as Management from "./internal/inspect/management.ts"
import { uniqueNames } from "./internal/uniqueNames.ts"
import * as Publisher from "./internal/publish/publisher.ts"
import * as Routes from "./internal/publish/routes.ts"
import * as Sender from "./internal/publish/sender.ts"
import { decode, type Options, type Settings } from "./RabbitMqOptions.ts"
import * as Plan from "./RabbitMqPlan.ts"
import * as RabbitMqQueue from "./RabbitMqQueue.ts"

/** Plans a consumer for its queue as it is, before anything is delivered. */
const preparer =
  (
    env: Found.Dependencies & {
      readonly ensure: Declarer.Declarer["ensure"]
      readonly found: Map<string, RabbitMqQueue.RabbitMqQueue>
      readonly plan: (request: Plan.Request) => Effect.Effect<Plan.Plan, BrokerError.BrokerError>
    }
  ) =>
  (request: Plan.Request): Effect.Effect<Plan.Plan, BrokerError.BrokerError> =>
    Effect.gen(function* () {
      const { ensure, found, plan, settings } = env
      const { queue } = request
      // Only an existing queue can be inspected. Declaring the queue reveals whether it has former settings.
      if (RabbitMqQueue.assertOf(queue, settings) === "declare") yield* ensure((yield* plan(request)).objects, queue)
      const one = yield* Found.find(env, queue)
      found.set(queue, one)
      const planned = yield* plan({ ...request, found: one })
      yield* Found.checkObjects(env, planned)
      yield* Found.checkTarget(env, one)
      return planned
    })

/** Logs the notes of a plan. Notes on messages that the queue loses are warnings. */
const report = ({ found, notes, queue }: Plan.Plan): Effect.Effect<void> => {
  const warnings = RabbitMqQueue.warnings(found)
  const log = (note: string) => (warnings.includes(note) ? Log.warning : Log.info)(note, { queue })
  return Effect.forEach(notes, log, { discard: true })
}

/** Opens the channels for the retries of a policy: thousands of messages may fail as soon as the queue is consumed. */
const readyDelays = (
  { native, route }: Plan.Plan,
  retry: RetryPolicy.RetryPolicy,
  { open }: Publisher.Publisher
): void => {
  if (native !== undefined) return
  const delays = RetryPolicy.schedule(retry).flatMap(({ delay }) => delay)
  for (const exchange of new Set(delays.filter((ms) => ms > 0).map((ms) => route(ms).exchange))) open(exchange)
}

/** Plans queues for the server as it is. */
const planner =
  (settings: Settings, serverVersion: () => string) =>
  (request: Plan.Request): Effect.Effect<Plan.Plan, BrokerError.BrokerError> => {
    const made = Plan.make(request, settings, serverVersion())
    return made instanceof ConfigurationError.ConfigurationError
      ? Effect.fail(BrokerError.ofPlan("rabbitmq", made))
      : Effect.succeed(made)
  }

/** Makes connections that close in parallel, so an unresponsive server delays closing only once. */
const connector = (settings: Settings) =>
  Effect.gen(function* () {
    const ends = yield* Scope.fork(yield* Effect.scope, "parallel")
    return (role: string) => Effect.flatMap(Scope.fork(ends), (end) => Scope.provide(Connect.make(settings, role), end))
  })

/** Logs the notes of a queue that has changed. */
const reporter = (planned: Plan.Plan) => {
  let last = planned
  return (next: Plan.Plan): Effect.Effect<void> => {
    const isNews = RabbitMqQueue.describe(next.found) !== RabbitMqQueue.describe(last.found)
    last = next
    return isNews ? report(next) : Effect.void
  }
}

/** Plans a queue as it is now, and logs the plan's notes; `undefined` if the server does not describe the queue. */
const inspect = (
  found: Effect.Effect<RabbitMqQueue.RabbitMqQueue | undefined>,
  plan: (found: RabbitMqQueue.RabbitMqQueue) => Effect.Effect<Plan.Plan, BrokerError.BrokerError>,
  reportOn: (next: Plan.Plan) => Effect.Effect<void, BrokerError.BrokerError>
): Effect.Effect<Plan.Plan | undefined, BrokerError.BrokerError> =>
  Effect.flatMap(found, (one) => (one === undefined ? Effect.undefined : Effect.tap(plan(one), reportOn)))

/** Sends producers' messages, without a retry policy. */
const producing = (
  settings: Settings,
  serverVersion: () => string,
  sender: Sender.Sender
): Broker.Service["publish"] => {
  /** By queue, until the broker closes: a program may send to many thousands of queues. */
  const ways = new Map<string, Routes.Way>()
  const wayOf = (queue: string): Routes.Way | ConfigurationError.ConfigurationError => {
    const known = ways.get(queue)
    if (known !== undefined) return known
    const made = Plan.make({ queue }, settings, serverVersion())
    if (made instanceof ConfigurationError.ConfigurationError) return made
    const { absent, homes, objects, route } = made
    const way = { queue, absent, homes, objects, route }
    ways.set(queue, way)
    return way
  }
  return (messages) =>
    Direct.make((onExit) => {
      const items: Array<Routes.Item> = []
      for (const message of messages) {
        const plan = wayOf(message.queue)
        if (plan instanceof ConfigurationError.ConfigurationError)
          return Direct.ended(onExit, Exit.fail(BrokerError.ofPlan("rabbitmq", plan)))
        items.push({ message, plan, original: Originals.find(message.body) })
      }
      return sender.begin(items, onExit)
    })
}

const build = Effect.fnUntraced(function* (settings: Settings) {
  const clock = yield* Clock.Clock
  const context = yield* Effect.context()
  const fork = (effect: Effect.Effect<unknown>) => void Effect.runForkWith(context)(effect)
  const now = () => clock.currentTimeMillisUnsafe()
  const elapsed = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const uniqueName = yield* uniqueNames
  const connect = yield* connector(settings)
  const consuming = yield* connect("consume")
  const { version } = consuming.current()!.driver
  const serverVersion = () => consuming.current()?.driver.version ?? version
  const possible = Plan.make({ queue: "any" }, settings, version)
  if (possible instanceof ConfigurationError.ConfigurationError) return yield* possible
  const publishing = yield* connect("publish")
  const capabilities = Capabilities.make(settings, version)
  const declarer = yield* Declarer.make(consuming, settings)
  const routes = Routes.make({ settings, maxBodySize: capabilities.maxBodySize, serverVersion, uniqueName, elapsed })
  const publisher = yield* Publisher.make(publishing, settings)
  const sender = Sender.make({ routes, declarer, publisher, fork, elapsed })

  const management = yield* Management.make(settings)
  const finder = { settings, declarer, management, serverVersion }
  /** Inspected queues, by name. */
  const found = new Map<string, RabbitMqQueue.RabbitMqQueue>()

  const plan = planner(settings, serverVersion)
  const policies = Policies.make(management, serverVersion)
  const prepare = preparer({ ...finder, ensure: declarer.ensure, found, plan })
  const service: Broker.Service = {
    capabilities,
    connection: () => Connection.all(consuming.state(), publishing.state()),
    publish: producing(settings, serverVersion, sender),
    subscribe: (options) =>
      Effect.gen(function* () {
        const { deadLetterQueues, queue, retry } = options
        const request = { queue, retry, deadLetterQueues }
        const prepared = prepare(request)
        const planned = yield* Effect.tap(foundOut(prepared), report)
        yield* Effect.ignore(policies.look(planned)) // Finding the queue logs an interface that does not answer.
        readyDelays(planned, retry, publisher)
        const reportNews = reporter(planned)
        const stranded = LeftBehind.warn(declarer, planned, settings)
        yield* stranded
        const inspected = inspect(
          Effect.andThen(stranded, Found.now(finder, queue)),
          (one) => plan({ ...request, found: one }),
          (next) => Effect.andThen(reportNews(next), policies.look(next))
        )
        return yield* subscribe(options, planned, {
          settings,
          connection: consuming,
          declarer,
          sender,
          uniqueName,
          early: policies.early,
          now,
          fork,
          replan: Effect.tap(prepared, reportNews),
          inspected
        })
      }),
    admin: Admin.make({
      found: (queue) => found.get(queue) ?? Plan.assumed(queue, settings),
      ...finder,
      declarer,
      publisher,
      requestTimeout: settings.requestTimeout,
      serverVersion,
      sender,
      uniqueName,
      now,
      plan: Remembered.make(plan, (queue) => found.get(queue), serverVersion),
      run: Effect.runPromiseWith(context)
    })
  }
  return service
})

/**
 * Makes a broker that lives until the scope closes.
 *
 * It connects at once. A wrong option, URL, password or virtual host, or a server that is too old, fails the start with
 * a remedy. It creates nothing until a consumer starts or a message is sent.
 *
 * @example
 * ```ts
 * import { RabbitMqBroker } from "@requeue/adapter-rabbitmq"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.scoped(
 *   Effect.map(RabbitMqBroker.make({ url: "amqp://localhost" }), ({ capabilities }) => capabilities.durableDelays)
 * )
 * ```
 */
export const make = (
  options: Options = {}
): Effect.Effect<Broker.Service, BrokerError.BrokerError | ConfigurationError.ConfigurationError, Scope.Scope> =>
  Effect.flatMap(Effect.fromResult(decode(options)), build)

/** Makes a Layer of the broker, with the errors of {@link make}. */
export const layer = (
  options: Options = {}
): Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Layer.effect(Broker.Broker, make(options))

/** Makes a Layer of the broker whose options come from Effect's Config. */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigurationError.ConfigurationError | Config.ConfigError> =>
  Layer.effect(Broker.Broker, AdapterOptions.fromConfig(options, make))

/** The operations, which only operators load. */
const operations = Effect.promise(() => import("./internal/inspect/operations.ts"))

/**
 * Serves `amqp:` and `amqps:` URLs: `amqp://user:password@host:5672/vhost?queueType=classic`. The query accepts every
 * option except `tls`; times are in milliseconds.
 */
export const adapter: Adapter.Adapter = {
  schemes: ["amqp", "amqps"],
  layer: (url, options) => layer({ ...options, url }),
  operations: {
    plan: (...request) => Effect.flatMap(operations, ({ plan }) => plan(...request)),
    operate: (...address) => Effect.flatMap(operations, ({ operate }) => operate(...address))
  }
}
