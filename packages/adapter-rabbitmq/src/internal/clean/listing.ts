/** Lists the objects that a configuration does not use. */
import type { Adapter, BrokerError, ConfigurationError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import type { Declarer } from "../declare/declare.ts"
import type { BindingInfo, Management } from "../inspect/management.ts"
import type * as Planned from "../inspect/planned.ts"
import * as Names from "../names.ts"
import * as Stale from "./stale.ts"

/** The part of the configuration that the objects are compared with. */
export interface Scope {
  /** Whether the requests are all queues of the configuration. If not, shared delays are never stale. Default: false. */
  readonly isWhole?: boolean | undefined
  /** A former prefix. All its objects are stale unless another queue refers to them. Default: none. */
  readonly prefix?: string | undefined
}

/** An object of Requeue that the configuration does not use. */
export interface StaleObject {
  readonly kind: "queue" | "exchange" | "binding"
  readonly name: string
  /** Its ready messages at this moment; `undefined` for an exchange or a binding. */
  readonly messages: number | undefined
  /** Why it is stale, in words. */
  readonly claim: string
}

/** The stale objects of a server. */
export interface Listing {
  readonly objects: ReadonlyArray<StaleObject>
  /** Notes on objects that the list leaves out. */
  readonly notes: ReadonlyArray<string>
}

/** An error of the server, or of a policy that the server cannot honour. */
export type Problem = BrokerError.BrokerError | ConfigurationError.ConfigurationError

/** The configuration, and how to ask the server. */
export interface Dependencies {
  readonly settings: Settings
  readonly declarer: Pick<Declarer, "onChannel">
  readonly management: Management | undefined
  readonly plan: (request: Planned.Request) => Effect.Effect<RabbitMqPlan.Plan, Problem>
}

/** The stale objects of a server, as the removal needs them. */
export interface Found {
  readonly plans: ReadonlyArray<RabbitMqPlan.Plan>
  readonly groups: ReadonlyArray<Stale.Group>
  /** Bindings of the holding queue, left by a killed clean. */
  readonly leftBindings: ReadonlyArray<BindingInfo>
  /** Bindings of former dead-letter queues. */
  readonly letters: ReadonlyArray<BindingInfo>
}

const withoutManagement = (prefix: string) =>
  `without the option management only queues of the default names are listed: delays of other lengths, exchanges, ` +
  `bindings and objects under ${prefix} need the management interface`

const interrupted = "a clean was killed: the next one moves these messages"

/** Returns the ready messages of a queue; `undefined` for one that does not exist. */
export const readyIn = (
  { onChannel }: Pick<Declarer, "onChannel">,
  queue: string
): Effect.Effect<number | undefined, BrokerError.BrokerError> =>
  onChannel("inspect", queue, (channel) => channel.checkQueue(queue)).pipe(
    Effect.map(({ messageCount }) => messageCount),
    Effect.catchIf(
      ({ reason }) => reason === "QueueMissing",
      () => Effect.undefined
    )
  )

/** The binding of a former dead-letter queue, as a row. */
export const letterRow = ({ queue, source }: BindingInfo): StaleObject => ({
  kind: "binding",
  name: `${source} -> ${queue}`,
  messages: undefined,
  claim: "the configuration sends these dead letters elsewhere"
})

/** The queues and exchanges of a group, as rows. */
export const rowsOf = (
  declarer: Pick<Declarer, "onChannel">,
  { claim, exchanges, queues }: Stale.Group
): Effect.Effect<ReadonlyArray<StaleObject>, BrokerError.BrokerError> =>
  Effect.map(
    Effect.forEach(queues, ({ name }) =>
      Effect.map(readyIn(declarer, name), (messages): StaleObject => ({ kind: "queue", name, messages, claim }))
    ),
    (rows) => [
      ...rows,
      ...exchanges.map(({ name }): StaleObject => ({ kind: "exchange", name, messages: undefined, claim }))
    ]
  )

/** Returns the binding as it was before a killed clean: an exchange and its stale queue have the same name. */
const originalOf =
  (queues: Stale.Snapshot["queues"]) =>
  (binding: BindingInfo): Stale.Snapshot["bindings"] =>
    queues.some(({ name }) => name === binding.source) ? [{ ...binding, queue: binding.source }] : []

/** Finds stale objects by the management interface. */
export const find = (
  { plan, settings }: Dependencies,
  requests: ReadonlyArray<Adapter.PlanRequest>,
  scope: Scope,
  { bindings, exchanges, queues }: Management
): Effect.Effect<Found, Problem> =>
  Effect.gen(function* () {
    const plans = yield* Effect.forEach(requests, plan)
    const all = yield* Effect.all({ bindings, exchanges, queues })
    const holdingQueue = Names.cleaning(settings)
    const leftBindings = all.bindings.filter(({ queue, source }) => queue === holdingQueue && source !== "")
    const others = all.bindings.filter(({ queue }) => queue !== holdingQueue)
    const snapshot = { ...all, bindings: [...others, ...leftBindings.flatMap(originalOf(all.queues))] }
    const wanted = { plans, settings, isWhole: scope.isWhole === true, prefix: scope.prefix }
    return { plans, leftBindings, groups: Stale.find(snapshot, wanted), letters: Stale.formerLetters(snapshot, wanted) }
  })

/** The row of a holding queue that was left by a killed clean. */
const leftRow = (name: string, messages: number): StaleObject => ({ kind: "queue", name, messages, claim: interrupted })

/** Lists the queues that have one of our default names. */
const listByName = (env: Dependencies, requests: ReadonlyArray<Adapter.PlanRequest>, scope: Scope) =>
  Effect.gen(function* () {
    const { declarer, plan, settings } = env
    const holdingQueue = Names.cleaning(settings)
    const plans = yield* Effect.forEach(requests, plan)
    const needed = new Set(plans.flatMap(({ objects }) => objects.map((one) => (one._tag === "Queue" ? one.name : ""))))
    const ofQueues = plans.flatMap(({ queue }) => [`${queue}.retry`, `${queue}.waiting.v1`])
    const shared = scope.isWhole === true ? [`${Names.own(settings)}retry`] : []
    const claim = "by its name, a delay queue that the configuration does not have"
    const rows: Array<StaleObject> = []
    for (const name of [...ofQueues, ...shared]) {
      const messages = needed.has(name) ? undefined : yield* readyIn(declarer, name)
      if (messages !== undefined) rows.push({ kind: "queue", name, messages, claim })
    }
    const left = (yield* readyIn(declarer, holdingQueue)) ?? 0
    return left > 0 ? [...rows, leftRow(holdingQueue, left)] : rows
  })

/** Lists the stale objects that the server reports. */
export const list = (
  env: Dependencies,
  requests: ReadonlyArray<Adapter.PlanRequest>,
  scope: Scope
): Effect.Effect<Listing, Problem> =>
  Effect.gen(function* () {
    const { declarer, management, settings } = env
    if (management === undefined)
      return {
        objects: yield* listByName(env, requests, scope),
        notes: [withoutManagement(scope.prefix ?? settings.prefix)]
      }
    const { groups, leftBindings, letters } = yield* find(env, requests, scope, management)
    const rows = yield* Effect.forEach(groups, (group) => rowsOf(declarer, group))
    const holdingQueue = Names.cleaning(settings)
    const left = yield* readyIn(declarer, holdingQueue)
    const isLeft = left !== undefined && (left > 0 || leftBindings.length > 0)
    return {
      objects: [...rows.flat(), ...letters.map(letterRow), ...(isLeft ? [leftRow(holdingQueue, left)] : [])],
      notes: scope.isWhole === true ? [] : ["delays that queues share are listed for a whole configuration only"]
    }
  })
