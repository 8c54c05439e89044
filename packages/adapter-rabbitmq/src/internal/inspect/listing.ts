/** Lists what a configuration no longer wants. */
import type { Adapter, BrokerError, ConfigurationError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import type { Declarer } from "../declare/declare.ts"
import * as Names from "../names.ts"
import type { BindingInfo, Management } from "./management.ts"
import type * as Planned from "./planned.ts"
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

/** An error of the server, or of a policy that it cannot have. */
export type Problem = BrokerError.BrokerError | ConfigurationError.ConfigurationError

/** The configuration, and how to ask the server. */
export interface Dependencies {
  readonly settings: Settings
  readonly declarer: Pick<Declarer, "onChannel">
  readonly management: Management | undefined
  readonly plan: (request: Planned.Request) => Effect.Effect<RabbitMqPlan.Plan, Problem>
}

/** Stale objects of a server, for the one who removes them. */
export interface Found {
  readonly plans: ReadonlyArray<RabbitMqPlan.Plan>
  readonly groups: ReadonlyArray<Stale.Group>
  /** Bindings of clean's own queue, of a clean that was killed. */
  readonly mine: ReadonlyArray<BindingInfo>
  /** Bindings of former dead-letter queues. */
  readonly letters: ReadonlyArray<BindingInfo>
}

const withoutManagement = (prefix: string) =>
  `without the option management only the queues of the usual names are looked for: of delays of other lengths, of ` +
  `exchanges and bindings, and of what is under ${prefix}, only the management interface tells`

const interrupted = "a clean was killed: the next one moves what came meanwhile"

/** The ready messages of a queue; `undefined` where there is none of that name. */
export const lookFor = (
  { onChannel }: Pick<Declarer, "onChannel">,
  name: string
): Effect.Effect<number | undefined, BrokerError.BrokerError> =>
  onChannel("inspect", name, (channel) => channel.checkQueue(name)).pipe(
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
      Effect.map(lookFor(declarer, name), (messages): StaleObject => ({ kind: "queue", name, messages, claim }))
    ),
    (rows) => [
      ...rows,
      ...exchanges.map(({ name }): StaleObject => ({ kind: "exchange", name, messages: undefined, claim }))
    ]
  )

/** The binding as it was before a clean that was killed: its own queue has the place of the one that it has begun with. */
const standIn =
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
    const meanwhile = Names.cleaning(settings)
    const mine = all.bindings.filter(({ queue, source }) => queue === meanwhile && source !== "")
    const others = all.bindings.filter(({ queue }) => queue !== meanwhile)
    const snapshot = { ...all, bindings: [...others, ...mine.flatMap(standIn(all.queues))] }
    const wanted = { plans, settings, isWhole: scope.isWhole === true, prefix: scope.prefix }
    return { plans, mine, groups: Stale.find(snapshot, wanted), letters: Stale.formerLetters(snapshot, wanted) }
  })

/** Queues that can be found without the management interface, by their names. */
const guess = (env: Dependencies, requests: ReadonlyArray<Adapter.PlanRequest>, scope: Scope) =>
  Effect.gen(function* () {
    const { declarer, plan, settings } = env
    const meanwhile = Names.cleaning(settings)
    const plans = yield* Effect.forEach(requests, plan)
    const needed = new Set(plans.flatMap(({ objects }) => objects.map((one) => (one._tag === "Queue" ? one.name : ""))))
    const own = plans.flatMap(({ queue }) => [`${queue}.retry`, `${queue}.waiting.v1`])
    const names = [...own, ...(scope.isWhole === true ? [`${Names.own(settings)}retry`] : []), meanwhile]
    const found = yield* Effect.forEach(
      names.filter((name) => !needed.has(name)),
      (name) => Effect.map(lookFor(declarer, name), (messages) => ({ name, messages }))
    )
    return found.flatMap(({ messages, name }): ReadonlyArray<StaleObject> => {
      const isMine = name === meanwhile
      if (messages === undefined || (isMine && messages === 0)) return []
      const claim = isMine ? interrupted : "by its name, a delay queue that the configuration does not have"
      return [{ kind: "queue", name, messages, claim }]
    })
  })

/** Lists stale objects, as far as the server tells. */
export const list = (
  env: Dependencies,
  requests: ReadonlyArray<Adapter.PlanRequest>,
  scope: Scope
): Effect.Effect<Listing, Problem> =>
  Effect.gen(function* () {
    const { declarer, management, settings } = env
    if (management === undefined)
      return {
        objects: yield* guess(env, requests, scope),
        notes: [withoutManagement(scope.prefix ?? settings.prefix)]
      }
    const { groups, letters, mine } = yield* find(env, requests, scope, management)
    const meanwhile = Names.cleaning(settings)
    const left = yield* lookFor(declarer, meanwhile)
    const isLeft = left !== undefined && (left > 0 || mine.length > 0)
    return {
      objects: [
        ...(yield* Effect.forEach(groups, (group) => rowsOf(declarer, group))).flat(),
        ...letters.map(letterRow),
        ...(isLeft ? [{ kind: "queue", name: meanwhile, messages: left, claim: interrupted } as const] : [])
      ],
      notes: scope.isWhole === true ? [] : ["delays that all queues share are judged for a whole configuration only"]
    }
  })
