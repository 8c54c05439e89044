/** Lists and removes the objects that a configuration does not use, on an open connection. */
import { type Adapter, BrokerError, ConfigurationError } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import * as Capabilities from "../capabilities.ts"
import type { Connection } from "../connect/connection.ts"
import type { Declarer } from "../declare/declare.ts"
import * as Objects from "../declare/objects.ts"
import * as Management from "../inspect/management.ts"
import * as Moving from "../inspect/moving.ts"
import * as Planned from "../inspect/planned.ts"
import * as Names from "../names.ts"
import * as Publisher from "../publish/publisher.ts"
import * as Routes from "../publish/routes.ts"
import * as Sender from "../publish/sender.ts"
import { uniqueNames } from "../uniqueNames.ts"
import * as Listing from "./listing.ts"
import { removeGroups } from "./removeGroups.ts"
import * as Server from "./server.ts"

/** A stale object, and whether it was removed. */
export interface Cleaned extends Listing.StaleObject {
  readonly outcome: "removed" | "kept"
  /** Why it was kept. */
  readonly why?: string | undefined
}

/** The result of a removal. */
export interface Report {
  readonly objects: ReadonlyArray<Cleaned>
  /** Messages that were moved to where they belong. */
  readonly moved: number
}

type Requests = ReadonlyArray<Adapter.PlanRequest>

/** The operator's functions for stale objects. */
export interface Cleaning {
  readonly stale: (requests: Requests, scope?: Listing.Scope) => Effect.Effect<Listing.Listing, Listing.Problem>
  /** Removes what `stale` lists, except objects in use. `signal` ends it early, and restores what it has begun. */
  readonly clean: (
    requests: Requests,
    scope?: Listing.Scope,
    signal?: AbortSignal
  ) => Effect.Effect<Report, Listing.Problem>
}

interface Dependencies extends Listing.Dependencies {
  readonly connection: Connection
  readonly declarer: Declarer
  readonly serverVersion: string
}

const refusal = (field: string, detail: string, remedy: string) =>
  new ConfigurationError.ConfigurationError({ field, broker: "rabbitmq", detail, remedy })

const needsManagement = refusal(
  "management",
  "only the management interface lists queues, and counts the messages that a queue still forwards",
  "Set management to its address, for example http://localhost:15672"
)

/** Rejects a former prefix under which objects in use would look stale. */
const refusePrefix = (prefix: string | undefined, settings: Settings) => {
  if (prefix === "")
    return refusal("prefix", "the former prefix is empty", "Give the prefix that programs had before, or leave it out")
  return prefix === settings.prefix
    ? refusal(
        "prefix",
        `${prefix} is the prefix of this configuration, and no former one`,
        "Leave it out: stale objects under the current prefix are found without it"
      )
    : undefined
}

const isRunning = (error: BrokerError.BrokerError): BrokerError.BrokerError =>
  error.reason !== "QueueMismatch"
    ? error
    : new BrokerError.BrokerError({
        broker: "rabbitmq",
        operation: "clean",
        reason: "QueueMismatch",
        detail: "another clean is running on this server",
        remedy: "Wait until it has ended, and run this one again"
      })

/** Takes the lock that limits cleaning to one clean at a time, and declares the holding queue. */
const prepare = ({ declarer, settings }: Dependencies, server: Server.Server) =>
  Effect.gen(function* () {
    const lock = `${Names.own(settings)}cleaning.lock`
    const { arguments: args, name } = Objects.kept(Names.cleaning(settings), settings)
    yield* Effect.mapError(
      server.ask(lock, (channel) => channel.assertQueue(lock, { exclusive: true, durable: false, autoDelete: true })),
      isRunning
    )
    yield* declarer.ensure(Objects.safetyNet(settings))
    yield* server.ask(name, (channel) => channel.assertQueue(name, { durable: true, arguments: args }))
  })

/** Binds diverted exchanges of a killed clean back to their queues, if the configuration uses them. */
const restoreDiverted = (
  { declarer, settings }: Dependencies,
  server: Server.Server,
  { groups, leftBindings, plans }: Listing.Found
) =>
  Effect.gen(function* () {
    const stale = new Set(groups.flatMap(({ exchanges }) => exchanges.map(({ name }) => name)))
    const wanted = leftBindings.filter(({ source }) => !stale.has(source))
    if (wanted.length === 0) return
    for (const { objects, onDemand, queue } of plans) yield* declarer.ensure([...objects, ...onDemand], queue)
    for (const binding of wanted) {
      if ((yield* Listing.readyIn(declarer, binding.source)) === undefined) continue
      yield* server.bind(binding, binding.source)
      yield* server.unbind(binding, Names.cleaning(settings))
    }
  })

/** Unbinds a former dead-letter queue, if another one is bound. */
const unbindLetter = (
  server: Server.Server,
  letter: Management.BindingInfo,
  bindings: ReadonlyArray<Management.BindingInfo>
): Effect.Effect<Cleaned, BrokerError.BrokerError> => {
  const row = Listing.letterRow(letter)
  const hasSuccessor = bindings.some(
    ({ key, queue, source }) => source === letter.source && key === letter.key && queue !== letter.queue
  )
  return hasSuccessor
    ? Effect.as(server.unbind(letter, letter.queue), { ...row, outcome: "removed" })
    : Effect.succeed({ ...row, outcome: "kept", why: "nothing else is bound yet: run requeue create first" })
}

/** Makes the function that moves messages out of stale queues, with a publisher. */
const mover = (env: Dependencies, requests: Requests, { groups }: Listing.Found) =>
  Effect.gen(function* () {
    const { connection, declarer, serverVersion, settings } = env
    const clock = yield* Clock.Clock
    const runFork = Effect.runForkWith(yield* Effect.context())
    const elapsed = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const uniqueName = yield* uniqueNames
    const publisher = yield* Publisher.make(connection, settings)
    const { maxBodySize } = Capabilities.make(settings, serverVersion)
    const routes = Routes.make({ settings, maxBodySize, serverVersion: () => serverVersion, uniqueName, elapsed })
    const fork = (effect: Effect.Effect<unknown>) => void runFork(effect)
    const dependencies = {
      sender: Sender.make({ routes, declarer, publisher, fork, elapsed }),
      publisher,
      declarer,
      plan: (queue: string) =>
        Effect.mapError(env.plan(requests.find((one) => one.queue === queue) ?? { queue }), (error) =>
          error instanceof BrokerError.BrokerError ? error : BrokerError.ofPlan("rabbitmq", error)
        ),
      serverVersion,
      undelivered: Names.undelivered(settings),
      settings,
      uniqueName,
      now: () => clock.currentTimeMillisUnsafe()
    }
    const stale = groups.flatMap(({ queues }) => queues)
    const sources = groups.flatMap(({ bindings }) => bindings.map(({ queue, source }) => [source, queue] as const))
    return Moving.make(dependencies, stale, new Map(sources))
  })

const run = (
  env: Dependencies,
  management: Management.Management,
  requests: Requests,
  scope: Listing.Scope,
  signal: AbortSignal | undefined
) =>
  Effect.gen(function* () {
    const { connection, declarer, settings } = env
    const clock = yield* Clock.Clock
    const server = Server.make(connection, yield* connection.within({ operation: "clean" }), settings.requestTimeout)
    yield* prepare(env, server)
    const found = yield* Listing.find(env, requests, scope, management)
    const rowsBefore = yield* Effect.forEach(found.groups, (group) => Listing.rowsOf(declarer, group))
    const move = yield* mover(env, requests, found)
    yield* restoreDiverted(env, server, found)
    const holdingQueue = Names.cleaning(settings)
    const isStopped = () => signal?.aborted === true
    const now = () => clock.currentTimeMillisUnsafe()
    const outcomes = yield* removeGroups({ server, management, move, holdingQueue, isStopped, now }, found.groups)
    const bindings = yield* management.bindings
    if (!bindings.some(({ queue, source }) => queue === holdingQueue && source !== ""))
      yield* server.deleteQueue({ name: holdingQueue, type: settings.queueType }, move)
    const letters = yield* Effect.forEach(found.letters, (letter) => unbindLetter(server, letter, bindings))
    const rows = outcomes.flatMap(({ why }, index) =>
      rowsBefore[index]!.map((row): Cleaned => ({ ...row, outcome: why === undefined ? "removed" : "kept", why }))
    )
    return { objects: [...rows, ...letters], moved: outcomes.reduce((sum, { moved }) => sum + moved, 0) }
  })

/** Makes the functions for stale objects. */
export const make = (
  settings: Settings,
  connection: Connection,
  declarer: Declarer,
  management: Management.Management | undefined
): Cleaning => {
  const serverVersion = connection.current()?.driver.version ?? RabbitMqPlan.oldestServer
  const finder = { settings, declarer, management, serverVersion: () => serverVersion }
  const plan: Listing.Dependencies["plan"] = (request) =>
    Effect.flatMap(Planned.find(finder, request.queue), (found) =>
      Planned.planFor(request, settings, serverVersion, found)
    )
  const env = { settings, connection, declarer, management, serverVersion, plan }
  return {
    stale: (requests, scope = {}) => refusePrefix(scope.prefix, settings) ?? Listing.list(env, requests, scope),
    clean: (requests, scope = {}, signal) =>
      refusePrefix(scope.prefix, settings) ??
      (management === undefined ? needsManagement : Effect.scoped(run(env, management, requests, scope, signal)))
  }
}
