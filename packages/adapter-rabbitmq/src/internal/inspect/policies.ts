/**
 * Policies of the server that change the queues of the adapter, because the pattern of a policy may match their names too.
 * https://www.rabbitmq.com/docs/policies
 */
import { type BrokerError, Delay, Log } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import * as RabbitMqQueue from "../../RabbitMqQueue.ts"
import type { KnownPolicies, Management, QueueInfo } from "./management.ts"
import * as PolicyRules from "./policyRules.ts"
import * as Together from "./coalesce.ts"

/** The harm that a policy does to a queue of the plan. */
export interface Harm {
  readonly queue: string
  /** Whether delays of this queue end early. */
  readonly isEarly: boolean
  readonly detail: string
}

const ttl = "x-message-ttl"
const letterKey = "x-dead-letter-routing-key"
const remedy = "Exclude the queue from the pattern of the policy or operator policy"

/** The harm to one queue, which was declared with `planned` arguments. Pure. */
const harmsOf = (
  { arguments: planned, name }: RabbitMqPlan.NativeQueue,
  { policy, type }: Pick<QueueInfo, "policy" | "type">,
  serverVersion: string
): ReadonlyArray<Harm> => {
  const found = RabbitMqQueue.managed(name, { arguments: planned, policy, type }, serverVersion, true)
  const { [ttl]: effective, ...others } = found.arguments
  const [own, key, limit] = [planned[ttl], found.arguments[letterKey], planned["x-delivery-limit"]]
  const harms: Array<Harm> = []
  const add = (text: string, isEarly = false): void => {
    harms.push({ queue: name, isEarly, detail: `${text}. ${remedy}` })
  }
  if (typeof own === "number" && typeof effective === "number" && effective < own)
    add(
      `queue ${name}: a policy of the server ends delays of ${Delay.format(own)} after ${Delay.format(effective)}`,
      true
    )
  // A message that leaves a delay queue by its TTL is not lost.
  const losses = RabbitMqQueue.warnings({ ...found, arguments: own === undefined ? found.arguments : others })
  const before = RabbitMqQueue.warnings({ ...found, arguments: planned })
  for (const text of losses) if (!before.includes(text)) add(`${text}, by a policy of the server`)
  if (typeof limit === "number" && found.deliveryLimit !== undefined && found.deliveryLimit < limit)
    add(`queue ${name}: a policy of the server removes its messages after ${found.deliveryLimit + 1} deliveries`)
  if (planned["x-dead-letter-exchange"] !== undefined && key !== planned[letterKey])
    add(
      `queue ${name}: a policy of the server gives its messages the routing key "${String(key)}", which misroutes them`
    )
  return harms
}

/**
 * The harm to the queues of a plan, except the planned queue, whose policies are part of its plan. Queues that do not exist yet are
 * included. Pure.
 */
export const harmsIn = (
  { objects, onDemand, queue }: Pick<RabbitMqPlan.Plan, "objects" | "onDemand" | "queue">,
  { queues, rules = PolicyRules.none }: KnownPolicies,
  serverVersion: string
): ReadonlyArray<Harm> => {
  const known = new Map(queues.map((info) => [info.name, info]))
  return [...objects, ...onDemand].flatMap((object) => {
    if (object._tag !== "Queue" || object.name === queue || object.assert === "never") return []
    const { policy, type = RabbitMqQueue.typeOf(object.arguments) } = known.get(object.name) ?? {}
    const definition = policy ?? PolicyRules.definitionFor(rules, object.name, type)
    return harmsOf(object, { policy: definition, type }, serverVersion)
  })
}

/**
 * Queues of the server whose TTL a policy shortens. Messages of other retry policies, such as that of a former version of the
 * program, wait in delay queues that a plan does not have. Pure.
 */
const shortened = ({ queues, rules = PolicyRules.none }: KnownPolicies): ReadonlyArray<string> =>
  queues.flatMap(({ arguments: args, name, policy, type = RabbitMqQueue.typeOf(args) }) => {
    const [own, limit] = [args[ttl], (policy ?? PolicyRules.definitionFor(rules, name, type))["message-ttl"]]
    return typeof own === "number" && typeof limit === "number" && limit < own ? [name] : []
  })

/** Milliseconds for which all consumers share a response of the management interface. */
const fresh = 10_000

/** Harms that one check logs separately. A policy may match all delay queues. */
const mostWarnings = 3

/** The policies on the queues of a broker. */
export interface Policies {
  /** Delay queues whose delays end early, by the last checks. */
  readonly early: ReadonlySet<string>
  /** Checks the queues of a plan and warns of new harm. Does nothing without a management interface. */
  readonly look: (plan: RabbitMqPlan.Plan) => Effect.Effect<void, BrokerError.BrokerError>
}

/** Knows no harm at first. */
export const make = (management: Management | undefined, serverVersion: () => string): Policies => {
  const early = new Set<string>()
  const warned = new Set<string>()
  const known = management && Together.make(() => management.policies, fresh)
  return {
    early,
    look: (plan) =>
      Effect.gen(function* () {
        if (known === undefined) return
        const all = yield* known("policies")
        const harms = harmsIn(plan, all, serverVersion())
        for (const { name } of all.queues) early.delete(name)
        for (const object of [...plan.objects, ...plan.onDemand]) if (object._tag === "Queue") early.delete(object.name)
        for (const { isEarly, queue } of harms) if (isEarly) early.add(queue)
        for (const name of shortened(all)) early.add(name)
        const news = harms.filter(({ detail }) => !warned.has(detail))
        for (const { detail } of news) warned.add(detail)
        for (const { detail } of news.slice(0, mostWarnings)) yield* Log.warning(detail, { queue: plan.queue })
        const others = news.length - mostWarnings
        const text = `policies of the server harm ${others} more queues of this plan, which requeue verify lists. ${remedy}`
        if (others > 0) yield* Log.warning(text, { queue: plan.queue })
      })
  }
}
