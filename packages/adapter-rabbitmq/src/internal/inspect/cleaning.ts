/** Lists what a configuration no longer wants, and removes it. */
import { type Adapter, BrokerError, ConfigurationError } from "@requeue/core/adapter-kit"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import * as Capabilities from "../capabilities.ts"
import type { Connection } from "../connect/connection.ts"
import type { Declarer } from "../declare/declare.ts"
import * as Objects from "../declare/objects.ts"
import * as Names from "../names.ts"
import * as Publisher from "../publish/publisher.ts"
import * as Routes from "../publish/routes.ts"
import * as Sender from "../publish/sender.ts"
import { uniqueNames } from "../uniqueNames.ts"
import * as Clean from "./clean.ts"
import * as Listing from "./listing.ts"
import * as Management from "./management.ts"
import * as Moving from "./moving.ts"
import * as Planned from "./planned.ts"
import * as Removal from "./removal.ts"

/** A stale object, and what has become of it. */
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

/** The operator's functions for stale objects. */
export interface Cleaning {
  readonly stale: (
    requests: ReadonlyArray<Adapter.PlanRequest>,
    scope?: Listing.Scope
  ) => Effect.Effect<Listing.Listing, Listing.Problem>
  /** Removes what `stale` lists, as far as it is not in use. `signal` ends it early, with everything in its place. */
  readonly clean: (
    requests: ReadonlyArray<Adapter.PlanRequest>,
    scope?: Listing.Scope,
    signal?: AbortSignal
  ) => Effect.Effect<Report, Listing.Problem>
}

/** The settings, and the connection that everything is asked on. */
interface Dependencies extends Listing.Dependencies {
  readonly connection: Connection
  readonly declarer: Declarer
  readonly serverVersion: string
}

const needsManagement = new ConfigurationError.ConfigurationError({
  field: "management",
  broker: "rabbitmq",
  detail: "only the management interface lists queues, and tells what a queue still hands on",
  remedy: "Give its address, for example http://localhost:15672"
})

const isBusy = (error: BrokerError.BrokerError): BrokerError.BrokerError =>
  error.reason !== "QueueMismatch"
    ? error
    : new BrokerError.BrokerError({
        broker: "rabbitmq",
        operation: "clean",
        reason: "QueueMismatch",
        detail: "somebody else is cleaning on this server",
        remedy: "Wait until that has ended, and run it again"
      })

/** Makes the queue of clean's own, and the lock that lets one of them run at a time. */
const prepare = ({ declarer, settings }: Dependencies, removal: Removal.Removal) =>
  Effect.gen(function* () {
    const lock = `${Names.own(settings)}cleaning.lock`
    const { arguments: args, name } = Objects.kept(Names.cleaning(settings), settings)
    yield* Effect.mapError(
      removal.ask(lock, (channel) => channel.assertQueue(lock, { exclusive: true, durable: false, autoDelete: true })),
      isBusy
    )
    yield* declarer.ensure(Objects.safetyNet(settings))
    yield* removal.ask(name, (channel) => channel.assertQueue(name, { durable: true, arguments: args }))
  })

/** Removes the queue of clean's own, which is empty, unless something still leads to it. */
const finish = (
  { settings }: Dependencies,
  removal: Removal.Removal,
  move: Moving.Move,
  bindings: ReadonlyArray<Management.BindingInfo>
) => {
  const name = Names.cleaning(settings)
  return bindings.some(({ queue, source }) => queue === name && source !== "")
    ? Effect.void
    : Effect.asVoid(removal.remove({ name, type: settings.queueType }, move))
}

/** Leads exchanges of a clean that was killed back to their queues, where these are wanted again. */
const giveBack = ({ declarer, settings }: Dependencies, removal: Removal.Removal, found: Listing.Found) =>
  Effect.gen(function* () {
    const { groups, mine, plans } = found
    const isStale = (source: string) => groups.some(({ exchanges }) => exchanges.some(({ name }) => name === source))
    const wanted = mine.filter(({ source }) => !isStale(source))
    if (wanted.length === 0) return
    for (const { objects, onDemand, queue } of plans) yield* declarer.ensure([...objects, ...onDemand], queue)
    for (const binding of wanted) {
      if ((yield* Listing.lookFor(declarer, binding.source)) === undefined) continue
      yield* removal.bind(binding, binding.source)
      yield* removal.unbind(binding, Names.cleaning(settings))
    }
  })

/** Removes bindings of former dead-letter queues, whose successors are bound already. */
const unbindLetters = (
  removal: Removal.Removal,
  { letters }: Listing.Found,
  bindings: ReadonlyArray<Management.BindingInfo>
) =>
  Effect.forEach(letters, (letter) =>
    Effect.gen(function* () {
      const hasSuccessor = bindings.some(
        ({ key, queue, source }) => source === letter.source && key === letter.key && queue !== letter.queue
      )
      if (!hasSuccessor) {
        const why = "nothing else is bound yet: run requeue create first"
        return { ...Listing.letterRow(letter), outcome: "kept", why } satisfies Cleaned
      }
      yield* removal.unbind(letter, letter.queue)
      return { ...Listing.letterRow(letter), outcome: "removed" } satisfies Cleaned
    })
  )

/** Moves messages out of stale queues, by a publisher of its own. */
const mover = (env: Dependencies, requests: ReadonlyArray<Adapter.PlanRequest>, { groups }: Listing.Found) =>
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
      own: Names.own(settings),
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
  requests: ReadonlyArray<Adapter.PlanRequest>,
  scope: Listing.Scope,
  signal: AbortSignal | undefined
) =>
  Effect.gen(function* () {
    const { connection, declarer, settings } = env
    const clock = yield* Clock.Clock
    const live = yield* connection.within({ operation: "clean" })
    const removal = Removal.make(connection, live, settings.requestTimeout)
    yield* prepare(env, removal)
    const found = yield* Listing.find(env, requests, scope, management)
    const before = yield* Effect.forEach(found.groups, (group) => Listing.rowsOf(declarer, group))
    const move = yield* mover(env, requests, found)
    yield* giveBack(env, removal, found)
    const outcomes = yield* Clean.run(
      {
        removal,
        management,
        move,
        meanwhile: Names.cleaning(settings),
        isStopped: () => signal?.aborted === true,
        now: () => clock.currentTimeMillisUnsafe()
      },
      found.groups
    )
    const rows = outcomes.flatMap(({ why }, index) =>
      before[index]!.map((row): Cleaned => ({ ...row, outcome: why === undefined ? "removed" : "kept", why }))
    )
    const moved = outcomes.reduce((sum, outcome) => sum + outcome.moved, 0)
    const bindings = yield* management.bindings
    yield* finish(env, removal, move, bindings)
    return { objects: [...rows, ...(yield* unbindLetters(removal, found, bindings))], moved }
  })

/** Lists and removes stale objects on an open connection. */
export const make = (settings: Settings, connection: Connection, declarer: Declarer): Cleaning => {
  const management = Management.make(settings)
  const serverVersion = connection.current()?.driver.version ?? RabbitMqPlan.oldestServer
  const finder = { settings, declarer, management, serverVersion: () => serverVersion }
  const plan: Listing.Dependencies["plan"] = (request) =>
    Effect.flatMap(Planned.find(finder, request.queue), (found) =>
      Planned.planFor(request, settings, serverVersion, found)
    )
  const env = { settings, connection, declarer, management, serverVersion, plan }
  return {
    stale: (requests, scope = {}) => Listing.list(env, requests, scope),
    clean: (requests, scope = {}, signal) =>
      management === undefined
        ? Effect.fail(needsManagement)
        : Effect.scoped(run(env, management, requests, scope, signal))
  }
}
