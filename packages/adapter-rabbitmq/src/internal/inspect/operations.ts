/** Shows a queue's plan, compares it with the objects of the server, and creates it. */
import { type Adapter, type BrokerError, ConfigurationError, type Plan } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as RabbitMqOperator from "../../RabbitMqOperator.ts"
import { decode, type Settings } from "../../RabbitMqOptions.ts"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import * as RabbitMqQueue from "../../RabbitMqQueue.ts"
import * as Capabilities from "../capabilities.ts"
import * as Cleaning from "../clean/cleaning.ts"
import * as Connection from "../connect/connection.ts"
import * as Declarer from "../declare/declare.ts"
import * as Declaring from "../declare/declaring.ts"
import * as Former from "../declare/legacyArguments.ts"
import { describe, type NativeBinding, type NativeObject, type NativeQueue } from "../declare/objects.ts"
import * as Version from "../version.ts"
import * as Flows from "./flows.ts"
import * as Found from "./found.ts"
import { leftBehind } from "./leftBehind.ts"
import * as Management from "./management.ts"
import * as Policies from "./policies.ts"
import { planFor } from "./planned.ts"
import * as Planned from "./planned.ts"

/** The version that a plan without a connection is for. */
const newestServer = "4.3"

const toPlanned = (object: NativeObject, settings: Settings): Plan.PlannedObject => {
  const [kind, name, details] = describe(object)
  const group = Flows.groupOf(object._tag === "Binding" ? object.queue : object.name, settings)
  return { kind, name, details: details.trim(), ...(group === undefined ? {} : { group }) }
}

const toPlan = (plan: RabbitMqPlan.Plan, request: Adapter.PlanRequest, settings: Settings): Plan.Plan => ({
  broker: "rabbitmq",
  queue: request.queue,
  delays: plan.topology,
  objects: plan.objects.map((object) => toPlanned(object, settings)),
  flows: Flows.flows(plan, request, settings),
  growth: plan.growth,
  lateness: plan.lateness,
  notes: plan.notes
})

/** The state of a planned object on the server. */
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

/** Checks an object, then declares it: if it exists, the server compares the arguments and changes nothing. */
const ask = ({ ensure, onChannel }: Declarer.Declarer, object: Exclude<NativeObject, NativeBinding>) => {
  const passive = onChannel("inspect", object.name, (channel) =>
    object._tag === "Queue" ? channel.checkQueue(object.name) : channel.checkExchange(object.name)
  )
  if (object.assert !== "declare") return passive
  return Effect.andThen(
    passive,
    onChannel("inspect", object.name, (channel) => Declaring.declare(channel, object))
  ).pipe(
    // A consumer accepts a queue that was made under former settings.
    Effect.catchIf(
      ({ reason }) => reason === "QueueMismatch",
      () => ensure([object])
    )
  )
}

const withoutManagement = "only the management interface reports it: set the option management"

/** A queue that the adapter does not declare: what it is, and the source of that. */
const foundFinding = (found: RabbitMqQueue.RabbitMqQueue): ReadonlyArray<Plan.Finding> => [
  ...(found.isOurs
    ? []
    : [
        {
          about: "found out",
          verdict: found.type === "unknown" ? ("unknown" as const) : ("good" as const),
          detail: RabbitMqQueue.describe(found)
        }
      ]),
  ...RabbitMqQueue.warnings(found).map((detail) => ({ about: "loss", verdict: "bad" as const, detail }))
]

/** A queue that was made under former settings. */
const formerFinding = (
  { former }: Declarer.Declarer,
  { arguments: args, name }: NativeQueue
): ReadonlyArray<Plan.Finding> => {
  const kept = Former.kept(former(name)?.arguments ?? args, args)
  return kept.length === 0
    ? []
    : [{ about: "settings", verdict: "good", detail: `queue ${name} keeps ${kept.join(", ")} from when it was made` }]
}

const unusable = ({ detail, queue, remedy = "" }: BrokerError.BrokerError): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field: "queue", queue, broker: "rabbitmq", detail, remedy })

const bindingVerdict = (binding: NativeBinding, there: ReadonlyArray<Management.BindingInfo> | undefined): Verdict => {
  if (there === undefined) return { state: "unknown", why: withoutManagement }
  const isThere = there.some(
    ({ key, queue, source }) => key === binding.key && queue === binding.queue && source === binding.source
  )
  return { state: isThere ? "present" : "missing" }
}

const toFinding = ({ about, detail, isGood }: RabbitMqOperator.Finding): Plan.Finding => ({
  about,
  verdict: isGood ? "good" : "bad",
  detail
})

const open = Effect.fnUntraced(function* (settings: Settings) {
  const connection = yield* Connection.make(settings, "operator")
  const { version } = connection.current()!.driver
  const refusal = Version.refusal(version)
  if (refusal !== undefined) return yield* refusal
  const declarer = yield* Declarer.make(connection, settings)
  const management = yield* Management.make(settings)

  const finder = { settings, declarer, management, serverVersion: () => version }
  const find = (queue: string) => Planned.find(finder, queue)

  const findings = Effect.fnUntraced(function* (found: RabbitMqQueue.RabbitMqQueue) {
    const own = foundFinding(found)
    if (management === undefined)
      return [
        ...own,
        { about: "settings", verdict: "unknown", detail: withoutManagement }
      ] satisfies ReadonlyArray<Plan.Finding>
    const told = yield* management.queue(found.name)
    return [...own, ...RabbitMqOperator.findingsOf(told, version, RabbitMqQueue.smallestLimit).map(toFinding)]
  })

  // The CLI finds these additional members.
  const operator: Adapter.Operator & Cleaning.Cleaning = {
    ...Cleaning.make(settings, connection, declarer, management),
    capabilities: Capabilities.make(settings, version),
    plan: (request) =>
      Effect.gen(function* () {
        // Plans even if the server does not respond, but not for a queue that a consumer could not use.
        const told = yield* Effect.result(Found.find(finder, request.queue))
        if (Result.isFailure(told) && !told.failure.isRetryable) return yield* unusable(told.failure)
        const found = Result.isSuccess(told) ? told.success : undefined
        return toPlan(yield* planFor(request, settings, version, found), request, settings)
      }),
    inspect: (request) =>
      Effect.gen(function* () {
        const found = yield* find(request.queue)
        const plan = yield* planFor(request, settings, version, found)
        const bindings = yield* management?.bindings ?? Effect.undefined
        const objects = yield* Effect.forEach(plan.objects, (object) =>
          Effect.map(
            object._tag === "Binding"
              ? Effect.succeed(bindingVerdict(object, bindings))
              : verdictOf(ask(declarer, object)),
            (verdict) => ({ ...toPlanned(object, settings), ...verdict })
          )
        )
        const former = plan.objects.flatMap((object) =>
          object._tag === "Queue" ? formerFinding(declarer, object) : []
        )
        const left = yield* leftBehind(declarer, plan, settings)
        const known = yield* management?.policies ?? Effect.succeed({ queues: [], rules: undefined })
        const policies = Policies.harmsIn(plan, known, version).map(
          ({ detail }): Plan.Finding => ({ about: "policies", verdict: "bad", detail })
        )
        return { objects, findings: [...former, ...left, ...(yield* findings(found)), ...policies] }
      }),
    create: (request) =>
      Effect.gen(function* () {
        const found = yield* find(request.queue)
        const { objects, onDemand } = yield* planFor(request, settings, version, found)
        // Consumers may declare nothing, and handlers may ask for delays outside the policy.
        yield* declarer.ensure([...objects, ...onDemand], request.queue)
      })
  }
  return operator
})

/** Plans a queue without a connection, for the newest server. */
export const plan: Adapter.Operations["plan"] = (request, url, options) =>
  Effect.gen(function* () {
    const settings = yield* Effect.fromResult(decode({ ...options, url }))
    return toPlan(yield* planFor(request, settings, newestServer), request, settings)
  })

/** Connects an operator. */
export const operate: Adapter.Operations["operate"] = (url, options) =>
  Effect.flatMap(Effect.fromResult(decode({ ...options, url })), open)
