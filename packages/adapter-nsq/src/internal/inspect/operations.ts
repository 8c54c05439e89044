/** A queue's plan for operators: shown, compared with what every nsqd has, and made. */
import { type Adapter, ConfigurationError, type Plan, RetryPolicy } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Operators from "../../NsqOperator.ts"
import { decode, type Settings } from "../../NsqOptions.ts"
import * as NsqPlan from "../../NsqPlan.ts"
import * as Capabilities from "../capabilities.ts"
import * as Flows from "./flows.ts"
import * as Http from "../http.ts"
import * as Limits from "../limits.ts"
import * as Lookup from "../connect/lookup.ts"
import * as Names from "../names.ts"
import * as Nodes from "../connect/nodes.ts"
import * as Nsqd from "./stats.ts"
import * as Pool from "../connect/publishing.ts"
import * as Survey from "./survey.ts"

const planFor = (
  { queue, retry }: Adapter.PlanRequest,
  settings: Settings,
  cap: number
): Effect.Effect<NsqPlan.Plan, ConfigurationError.ConfigurationError> => {
  const deadLetterQueues = RetryPolicy.deadLetterQueues(retry, queue)
  const plan = NsqPlan.make({ queue, retry, deadLetterQueues }, settings, cap)
  return plan instanceof ConfigurationError.ConfigurationError ? Effect.fail(plan) : Effect.succeed(plan)
}

const objectsOf = ({ deadLetters, retry, source }: NsqPlan.Plan): ReadonlyArray<Plan.PlannedObject> => {
  const all = (role: string, queue: NsqPlan.Queue) => [
    { kind: "topic", name: queue.topic, details: role },
    { kind: "channel", name: Names.toText(queue), details: "" }
  ]
  const objects = [
    ...all("messages", source),
    ...all("retries that are copies", retry),
    ...deadLetters.flatMap((queue) => all("dead letters", queue))
  ]
  return [...new Map(objects.map((object) => [object.name, object])).values()]
}

/** Which no setting of nsqd prevents. */
const losses = ({ publishTo }: Settings): ReadonlyArray<string> =>
  publishTo === 2 ? [] : ["an nsqd that is killed loses its messages in memory, in flight and deferred: see publishTo"]

const toPlan = (plan: NsqPlan.Plan, request: Adapter.PlanRequest, settings: Settings, cap: number): Plan.Plan => ({
  broker: "nsq",
  queue: request.queue,
  delays: settings.retry === "exact" ? "deferred copies" : "requeued by nsqd",
  objects: objectsOf(plan),
  flows: Flows.flows(plan, request, settings, cap),
  notes: [...plan.notes, ...losses(settings)]
})

const withoutHttp = "only nsqd's HTTP interface tells: set http: true"

/** How an object stands on all the nsqd that could be asked. */
const standing = (
  { name }: Plan.PlannedObject,
  all: ReadonlyArray<Survey.Facts>
): Pick<Plan.Inspected, "state" | "why"> => {
  const asked = all.filter(({ missing }) => missing !== undefined)
  if (asked.length === 0) return { state: "unknown", why: withoutHttp }
  const having = asked.filter(({ missing }) => missing?.includes(name) === false).map(({ nsqd }) => nsqd)
  if (having.length === 0) return { state: "missing" }
  return { state: "present", why: having.length === asked.length ? undefined : `only on ${having.join(", ")}` }
}

const toFinding = ({ about, detail, isGood, nsqd }: Operators.Finding): Plan.Finding => ({
  about,
  verdict: isGood ? "good" : "bad",
  detail: nsqd === undefined ? detail : `${nsqd}: ${detail}`
})

const operate = Effect.fnUntraced(function* (settings: Settings) {
  const nodes = yield* Nodes.make(settings)
  const lookup = Lookup.make(settings)
  yield* Pool.make(settings, nodes, lookup)
  const cap = () => nodes.limits().maxReqTimeout

  const operator: Adapter.Operator = {
    capabilities: Capabilities.make(settings, nodes.limits()),
    plan: (request) => Effect.map(planFor(request, settings, cap()), (plan) => toPlan(plan, request, settings, cap())),
    inspect: (request) =>
      Effect.gen(function* () {
        const plan = yield* planFor(request, settings, cap())
        const { facts, failures } = yield* Survey.askAll(plan, settings, nodes, lookup)
        // What is missing is told of the objects, and what nsqd loses is no matter of how it is set up.
        const findings = Operators.judge(facts, settings).filter(({ about }) => about !== "topics" && about !== "loss")
        const away = failures.map(({ message }): Plan.Finding => ({ about: "nsqd", verdict: "bad", detail: message }))
        return {
          objects: objectsOf(plan).map((object) => ({ ...object, ...standing(object, facts) })),
          findings: [...away, ...findings.map(toFinding)]
        }
      }),
    create: (request) =>
      Effect.gen(function* () {
        const plan = yield* planFor(request, settings, cap())
        if (!settings.http) return yield* Http.needed("create", request.queue)
        for (const { address } of yield* Survey.nodesOf(plan, settings, nodes, lookup)) {
          if (address.http === undefined) continue
          for (const queue of Survey.queuesOf(plan)) yield* Nsqd.create(address.http, queue, settings.requestTimeout)
        }
      })
  }
  return operator
})

export const operations: Adapter.Operations = {
  plan: (request, url, options) =>
    Effect.gen(function* () {
      const settings = yield* Effect.fromResult(decode({ ...options, url }))
      const cap = settings.maxReqTimeout ?? Limits.usual.maxReqTimeout
      return toPlan(yield* planFor(request, settings, cap), request, settings, cap)
    }),
  operate: (url, options) => Effect.flatMap(Effect.fromResult(decode({ ...options, url })), operate)
}
