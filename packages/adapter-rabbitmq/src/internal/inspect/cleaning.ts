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
import * as Management from "./management.ts"
import * as Moving from "./moving.ts"
import * as Planned from "./planned.ts"
import * as Removal from "./removal.ts"
import * as Stale from "./stale.ts"

/** The part of the configuration that the objects are compared with. */
export interface Scope {
  /** Whether the queues that are given are all of the configuration; else no shared delay is judged. Default: no. */
  readonly isWhole?: boolean | undefined
  /** A former prefix: what is under it is stale, but for what queues still refer to. Default: none. */
  readonly prefix?: string | undefined
}

/** An object of ours that the configuration does not want. */
export interface StaleObject {
  readonly kind: "queue" | "exchange" | "binding"
  readonly name: string
  /** Its messages that are ready, at this moment; `undefined` for what is no queue. */
  readonly messages: number | undefined
  /** The reason to take it for stale, in words. */
  readonly claim: string
}

/** A list of stale objects. */
export interface Listing {
  readonly objects: ReadonlyArray<StaleObject>
  /** Remarks for people, as on what cannot be told. */
  readonly notes: ReadonlyArray<string>
}

/** A stale object, and what has become of it. */
export interface Cleaned extends StaleObject {
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

type Problem = BrokerError.BrokerError | ConfigurationError.ConfigurationError

/** The operator's functions for stale objects. */
export interface Cleaning {
  readonly stale: (requests: ReadonlyArray<Adapter.PlanRequest>, scope?: Scope) => Effect.Effect<Listing, Problem>
  /** Removes what `stale` lists, as far as it is not in use. `signal` ends it early, with everything in its place. */
  readonly clean: (
    requests: ReadonlyArray<Adapter.PlanRequest>,
    scope?: Scope,
    signal?: AbortSignal
  ) => Effect.Effect<Report, Problem>
}

const withoutManagement = (prefix: string) =>
  `without the option management only the queues of the usual names are looked for: of delays of other lengths, of ` +
  `exchanges and bindings, and of what is under ${prefix}, only the management interface tells`

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

const nameOf = ({ queue, source }: { readonly source: string; readonly queue: string }) => `${source} -> ${queue}`

/**
 * Lists and removes stale objects on an open connection.
 *
 * Long, because the steps share the connection, its settings, and how objects are told.
 */
export const make = (settings: Settings, connection: Connection, declarer: Declarer): Cleaning => {
  const management = Management.make(settings)
  const serverVersion = connection.current()?.driver.version ?? RabbitMqPlan.oldestServer
  const finder = { settings, declarer, management, serverVersion: () => serverVersion }
  const plan = (request: Planned.Request): Effect.Effect<RabbitMqPlan.Plan, Problem> =>
    Effect.flatMap(Planned.find(finder, request.queue), (found) =>
      Planned.planFor(request, settings, serverVersion, found)
    )
  const meanwhile = Names.cleaning(settings)
  const lettersClaim = "the configuration sends these dead letters elsewhere"

  const readyOf = (name: string) =>
    Effect.map(
      declarer.onChannel("inspect", name, (channel) => channel.checkQueue(name)),
      ({ messageCount }) => messageCount
    )
  /** The messages of a queue; `undefined` where there is none of that name. */
  const lookFor = (name: string) =>
    Effect.catchIf(
      readyOf(name),
      ({ reason }) => reason === "QueueMissing",
      () => Effect.undefined
    )

  const snapshotOf = ({ bindings, exchanges, queues }: Management.Management) =>
    Effect.all({ bindings, exchanges, queues })

  const find = (requests: ReadonlyArray<Adapter.PlanRequest>, scope: Scope, from: Management.Management) =>
    Effect.gen(function* () {
      const plans = yield* Effect.forEach(requests, plan)
      const all = yield* snapshotOf(from)
      const mine = all.bindings.filter(({ queue, source }) => queue === meanwhile && source !== "")
      // After a clean that was killed, its own queue has the place of the one that it has begun with.
      const bindings = [
        ...all.bindings.filter(({ queue }) => queue !== meanwhile),
        ...mine.flatMap(standIn(all.queues))
      ]
      const wanted = { plans, settings, isWhole: scope.isWhole === true, prefix: scope.prefix }
      const snapshot = { ...all, bindings }
      const groups = Stale.find(snapshot, wanted)
      return { plans, groups, mine, letters: Stale.formerLetters(snapshot, wanted) }
    })

  const standIn =
    (queues: Stale.Snapshot["queues"]) =>
    (binding: Stale.Snapshot["bindings"][number]): Stale.Snapshot["bindings"] =>
      queues.some(({ name }) => name === binding.source) ? [{ ...binding, queue: binding.source }] : []

  const rowsOf = (group: Stale.Group): Effect.Effect<ReadonlyArray<StaleObject>, BrokerError.BrokerError> =>
    Effect.map(
      Effect.forEach(group.queues, ({ name }) =>
        Effect.map(lookFor(name), (messages): StaleObject => ({ kind: "queue", name, messages, claim: group.claim }))
      ),
      (queues) => [
        ...queues,
        ...group.exchanges.map(
          ({ name }): StaleObject => ({ kind: "exchange", name, messages: undefined, claim: group.claim })
        )
      ]
    )

  const letterRow = (binding: Stale.Snapshot["bindings"][number]): StaleObject => ({
    kind: "binding",
    name: nameOf(binding),
    messages: undefined,
    claim: lettersClaim
  })

  /** Queues that can be found without the management interface, by their names. */
  const guess = (requests: ReadonlyArray<Adapter.PlanRequest>, scope: Scope) =>
    Effect.gen(function* () {
      const plans = yield* Effect.forEach(requests, plan)
      const needed = new Set(
        plans.flatMap(({ objects }) => objects.map((one) => (one._tag === "Queue" ? one.name : "")))
      )
      const own = plans.flatMap(({ queue }) => [`${queue}.retry`, `${queue}.waiting.v1`])
      const names = [...own, ...(scope.isWhole === true ? [`${Names.own(settings)}retry`] : []), meanwhile]
      const found = yield* Effect.forEach(
        names.filter((name) => !needed.has(name)),
        (name) => Effect.map(lookFor(name), (messages) => ({ name, messages }))
      )
      return found.flatMap(({ messages, name }): ReadonlyArray<StaleObject> => {
        const isMine = name === meanwhile
        if (messages === undefined || (isMine && messages === 0)) return []
        const claim = isMine ? interrupted : "by its name, a delay queue that the configuration does not have"
        return [{ kind: "queue", name, messages, claim }]
      })
    })

  const interrupted = "a clean was killed: the next one moves what came meanwhile"

  const stale: Cleaning["stale"] = (requests, scope = {}) =>
    Effect.gen(function* () {
      if (management === undefined)
        return { objects: yield* guess(requests, scope), notes: [withoutManagement(scope.prefix ?? settings.prefix)] }
      const { groups, letters, mine } = yield* find(requests, scope, management)
      const left = yield* lookFor(meanwhile)
      const isLeft = left !== undefined && (left > 0 || mine.length > 0)
      return {
        objects: [
          ...(yield* Effect.forEach(groups, rowsOf)).flat(),
          ...letters.map(letterRow),
          ...(isLeft ? [{ kind: "queue", name: meanwhile, messages: left, claim: interrupted } as const] : [])
        ],
        notes: scope.isWhole === true ? [] : ["delays that all queues share are judged for a whole configuration only"]
      }
    })

  /** Makes the queue of clean's own, and the lock that lets one of them run at a time. */
  const prepare = (removal: Removal.Removal) =>
    Effect.gen(function* () {
      const lock = `${Names.own(settings)}cleaning.lock`
      yield* Effect.mapError(
        removal.ask(lock, (channel) =>
          channel.assertQueue(lock, { exclusive: true, durable: false, autoDelete: true })
        ),
        isBusy
      )
      yield* declarer.ensure([...Objects.safetyNet(settings), Objects.kept(meanwhile, settings)])
    })

  /** Leads exchanges of a clean that was killed back to their queues, where these are wanted again. */
  const giveBack = (removal: Removal.Removal, { groups, mine, plans }: Effect.Success<ReturnType<typeof find>>) =>
    Effect.gen(function* () {
      const isStale = (source: string) => groups.some(({ exchanges }) => exchanges.some(({ name }) => name === source))
      const wanted = mine.filter(({ source }) => !isStale(source))
      if (wanted.length === 0) return
      for (const { objects, onDemand, queue } of plans) yield* declarer.ensure([...objects, ...onDemand], queue)
      for (const binding of wanted) {
        if ((yield* lookFor(binding.source)) === undefined) continue
        yield* removal.bind(binding, binding.source)
        yield* removal.unbind(binding, meanwhile)
      }
    })

  /** Removes bindings of former dead-letter queues, whose successors are bound already. */
  const unbindLetters = (removal: Removal.Removal, letters: Stale.Snapshot["bindings"], there: Management.Management) =>
    Effect.gen(function* () {
      const bindings = yield* there.bindings
      return yield* Effect.forEach(letters, (letter) =>
        Effect.gen(function* () {
          const hasSuccessor = bindings.some(
            ({ key, queue, source }) => source === letter.source && key === letter.key && queue !== letter.queue
          )
          if (!hasSuccessor) {
            const why = "nothing else is bound yet: run requeue create first"
            return { ...letterRow(letter), outcome: "kept", why } satisfies Cleaned
          }
          yield* removal.unbind(letter, letter.queue)
          return { ...letterRow(letter), outcome: "removed" } satisfies Cleaned
        })
      )
    })

  const clean: Cleaning["clean"] = (requests, scope = {}, signal) =>
    Effect.scoped(
      Effect.gen(function* () {
        if (management === undefined) return yield* needsManagement
        const clock = yield* Clock.Clock
        const runFork = Effect.runForkWith(yield* Effect.context())
        const now = () => clock.currentTimeMillisUnsafe()
        const elapsed = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
        const uniqueName = yield* uniqueNames
        const live = yield* connection.within({ operation: "clean" })
        const removal = Removal.make(connection, live, settings.requestTimeout)
        yield* prepare(removal)
        const found = yield* find(requests, scope, management)
        const { groups, letters } = found
        const before = yield* Effect.forEach(groups, rowsOf)
        const publisher = yield* Publisher.make(connection, settings)
        const { maxBodySize } = Capabilities.make(settings, serverVersion)
        const routes = Routes.make({ settings, maxBodySize, uniqueName, elapsed })
        const fork = (effect: Effect.Effect<unknown>) => void runFork(effect)
        const sender = Sender.make({ routes, declarer, publisher, fork, elapsed })
        const planOf = (queue: string) =>
          Effect.mapError(plan(requests.find((one) => one.queue === queue) ?? { queue }), (error) =>
            error instanceof BrokerError.BrokerError ? error : BrokerError.ofPlan("rabbitmq", error)
          )
        const [undelivered, own] = [Names.undelivered(settings), Names.own(settings)]
        const dependencies = {
          sender,
          publisher,
          declarer,
          plan: planOf,
          serverVersion,
          undelivered,
          own,
          uniqueName,
          now
        }
        const sources = new Map(
          groups.flatMap(({ bindings }) => bindings.map(({ queue, source }) => [source, queue] as const))
        )
        const move = Moving.make(
          dependencies,
          groups.flatMap(({ queues }) => queues),
          sources
        )
        yield* giveBack(removal, found)
        const isStopped = () => signal?.aborted === true
        const outcomes = yield* Clean.run({ removal, management, move, meanwhile, isStopped, now }, groups)
        const rows = outcomes.flatMap(({ why }, index) =>
          before[index]!.map((row): Cleaned => ({ ...row, outcome: why === undefined ? "removed" : "kept", why }))
        )
        const moved = outcomes.reduce((sum, outcome) => sum + outcome.moved, 0)
        return { objects: [...rows, ...(yield* unbindLetters(removal, letters, management))], moved }
      })
    )

  return { stale, clean }
}
