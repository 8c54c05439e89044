/** A queue's plan for operators: shown, compared with what the server has, and made. */
import { type Adapter, type BrokerError, ConfigurationError, type Plan, RetryPolicy } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Operators from "../../RabbitMqOperator.ts"
import { decode, type Settings } from "../../RabbitMqOptions.ts"
import * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import * as Capabilities from "../capabilities.ts"
import * as Declarer from "../declare/declare.ts"
import * as Flows from "./flows.ts"
import * as Link from "../connect/connection.ts"
import * as Management from "./management.ts"
import type { Object } from "../declare/objects.ts"
import * as Objects from "../declare/objects.ts"
import * as Version from "../version.ts"

/** What is planned for without a connection. */
const newestServer = "4.3"

const planFor = (
  { queue, retry }: Adapter.PlanRequest,
  settings: Settings,
  version: string
): Effect.Effect<RabbitMqPlan.Plan, ConfigurationError.ConfigurationError> => {
  const deadLetterQueues = RetryPolicy.deadLetterQueues(retry, queue)
  const plan = RabbitMqPlan.make({ queue, retry, deadLetterQueues }, settings, version)
  return plan instanceof ConfigurationError.ConfigurationError ? Effect.fail(plan) : Effect.succeed(plan)
}

const show = (object: Object, settings: Settings): Plan.PlannedObject => {
  const [kind = "", name = "", details = ""] = Objects.describe(object)
  const group = Flows.groupOf(object._tag === "Binding" ? object.queue : object.name, settings)
  return { kind, name, details: details.trim(), ...(group === undefined ? {} : { group }) }
}

const toPlan = (plan: RabbitMqPlan.Plan, request: Adapter.PlanRequest, settings: Settings): Plan.Plan => ({
  broker: "rabbitmq",
  queue: request.queue,
  delays: plan.topology,
  objects: plan.objects.map((object) => show(object, settings)),
  flows: Flows.flows(plan, request, settings),
  notes: plan.notes
})

type Verdict = Pick<Plan.Inspected, "state" | "why">

const verdictOf = (
  check: Effect.Effect<unknown, BrokerError.BrokerError>
): Effect.Effect<Verdict, BrokerError.BrokerError> =>
  check.pipe(
    Effect.as<Verdict>({ state: "present" }),
    Effect.catch((error) => {
      if (error.reason === "QueueMissing") return Effect.succeed<Verdict>({ state: "missing" })
      if (error.reason === "QueueMismatch") return Effect.succeed<Verdict>({ state: "different", why: error.detail })
      if (error.reason === "AccessRefused") return Effect.succeed<Verdict>({ state: "unknown", why: error.detail })
      return Effect.fail(error)
    })
  )

/** Asks for what an object is. A declaration of what exists already compares, and changes nothing. */
const ask = ({ onChannel }: Declarer.Declarer, object: Exclude<Object, { _tag: "Binding" }>) => {
  const passive = onChannel("inspect", object.name, (channel) =>
    object._tag === "Queue" ? channel.checkQueue(object.name) : channel.checkExchange(object.name)
  )
  if (object.assert !== "declare") return passive
  return Effect.andThen(
    passive,
    onChannel("inspect", object.name, (channel) => Declarer.declare(channel, object))
  )
}

const withoutManagement = "only the management interface tells: give the option management"

const bindingOf = (
  binding: Extract<Object, { _tag: "Binding" }>,
  there: ReadonlyArray<Management.BindingInfo> | undefined
): Verdict => {
  if (there === undefined) return { state: "unknown", why: withoutManagement }
  const isThere = there.some(
    ({ key, queue, source }) => key === binding.key && queue === binding.queue && source === binding.source
  )
  return { state: isThere ? "present" : "missing" }
}

const toFinding = ({ about, detail, isGood }: Operators.Finding): Plan.Finding => ({
  about,
  verdict: isGood ? "good" : "bad",
  detail
})

const operate = Effect.fnUntraced(function* (settings: Settings) {
  const link = yield* Link.make(settings, "operator")
  const version = link.current()!.connection.version
  const refusal = Version.refusal(version)
  if (refusal !== undefined) return yield* refusal
  const declarer = yield* Declarer.make(link, settings)
  const management = Management.make(settings)

  const findings = Effect.fnUntraced(function* (queue: string) {
    if (management === undefined) {
      return [
        { about: "settings", verdict: "unknown", detail: withoutManagement }
      ] satisfies ReadonlyArray<Plan.Finding>
    }
    const queues = yield* management.queues
    return Operators.judge(
      queues.find(({ name }) => name === queue),
      version
    ).map(toFinding)
  })

  const operator: Adapter.Operator = {
    capabilities: Capabilities.make(settings, version),
    plan: (request) => Effect.map(planFor(request, settings, version), (plan) => toPlan(plan, request, settings)),
    inspect: (request) =>
      Effect.gen(function* () {
        const plan = yield* planFor(request, settings, version)
        const bindings = yield* management?.bindings ?? Effect.undefined
        const objects = yield* Effect.forEach(plan.objects, (object) =>
          Effect.map(
            object._tag === "Binding" ? Effect.succeed(bindingOf(object, bindings)) : verdictOf(ask(declarer, object)),
            (verdict) => ({ ...show(object, settings), ...verdict })
          )
        )
        return { objects, findings: yield* findings(request.queue) }
      }),
    create: (request) =>
      Effect.flatMap(planFor(request, settings, version), ({ objects }) => declarer.ensure(objects, request.queue))
  }
  return operator
})

export const operations: Adapter.Operations = {
  plan: (request, url, options) =>
    Effect.gen(function* () {
      const settings = yield* Effect.fromResult(decode({ ...options, url }))
      return toPlan(yield* planFor(request, settings, newestServer), request, settings)
    }),
  operate: (url, options) => Effect.flatMap(Effect.fromResult(decode({ ...options, url })), operate)
}
