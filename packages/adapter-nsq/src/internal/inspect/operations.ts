/** The adapter's part of the CLI: shows a queue's plan, compares it with every nsqd, and creates it. */
import { type Adapter, ConfigurationError, type Plan, RetryPolicy } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as NsqOperator from "../../NsqOperator.ts"
import { decode, type Settings } from "../../NsqOptions.ts"
import * as NsqPlan from "../../NsqPlan.ts"
import * as Capabilities from "../capabilities.ts"
import * as Known from "../connect/known.ts"
import * as Publishing from "../connect/publishing.ts"
import { objectsOf, queuesOf } from "../declare/objects.ts"
import * as Http from "../http.ts"
import * as Limits from "../limits.ts"
import * as NsqdHttp from "../nsqdHttp.ts"
import * as Flows from "./flows.ts"
import { setPaused } from "./pausing.ts"
import * as Survey from "./survey.ts"

const planFor = (
  { queue, retry }: Adapter.PlanRequest,
  settings: Settings,
  cap: number
): Effect.Effect<NsqPlan.Plan, ConfigurationError.ConfigurationError> => {
  const deadLetterQueues = RetryPolicy.deadLetterQueues(retry, queue)
  return ConfigurationError.orFail(NsqPlan.make({ queue, retry, deadLetterQueues }, settings, cap))
}

/** Notes about messages that nsqd may lose with any settings. */
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

const withoutHttp = "only nsqd's HTTP interface reports this: set http: true"

/** Whether an object exists on the nsqd that have answered. */
const stateOf = (
  { name }: Plan.PlannedObject,
  all: ReadonlyArray<Survey.NodeState>
): Pick<Plan.Inspected, "state" | "why"> => {
  const asked = all.filter(({ missing }) => missing !== undefined)
  if (asked.length === 0) return { state: "unknown", why: withoutHttp }
  const having = asked.filter(({ missing }) => missing?.includes(name) === false).map(({ nsqd }) => nsqd)
  if (having.length === 0) return { state: "missing" }
  return { state: "present", why: having.length === asked.length ? undefined : `only on ${having.join(", ")}` }
}

const toFinding = ({ about, detail, isGood, nsqd }: NsqOperator.Finding): Plan.Finding => ({
  about,
  verdict: isGood ? "good" : "bad",
  detail: nsqd === undefined ? detail : `${nsqd}: ${detail}`
})

const operate = Effect.fnUntraced(function* (settings: Settings) {
  const known = yield* Known.make(settings)
  const { driver, lookup, nodes } = known
  // nsqd's limits are known once a publishing connection is open.
  yield* Publishing.make(settings, driver, nodes, lookup)
  const cap = () => nodes.limits().maxReqTimeout

  const operator: Adapter.Operator = {
    capabilities: Capabilities.make(settings, nodes.limits()),
    plan: (request) => Effect.map(planFor(request, settings, cap()), (plan) => toPlan(plan, request, settings, cap())),
    inspect: (request) =>
      Effect.gen(function* () {
        const plan = yield* planFor(request, settings, cap())
        const { states, failures } = yield* Survey.askAll(plan, known)
        // The objects show missing topics, and the plan's notes show losses.
        const findings = NsqOperator.findingsOf(states, settings).filter(
          ({ about }) => about !== "topics" && about !== "loss"
        )
        const away = failures.map(({ message }): Plan.Finding => ({ about: "nsqd", verdict: "bad", detail: message }))
        return {
          objects: objectsOf(plan).map((object) => ({ ...object, ...stateOf(object, states) })),
          findings: [...away, ...findings.map(toFinding)]
        }
      }),
    create: (request) =>
      Effect.gen(function* () {
        const plan = yield* planFor(request, settings, cap())
        if (!settings.http) return yield* Http.needed("create", request.queue)
        const { all } = yield* Survey.nodesOf(plan, known)
        for (const { address } of all) {
          if (address.http === undefined) continue
          for (const queue of queuesOf(plan)) yield* NsqdHttp.create(address.http, queue, known)
        }
      }),
    setPaused: (queue, isPaused) => setPaused(known, queue, isPaused)
  }
  return operator
})

/** Shows the plan of a queue without a connection; with one, compares it with every nsqd and creates it. */
export const operations: Adapter.Operations = {
  plan: (request, url, options) =>
    Effect.gen(function* () {
      const settings = yield* Effect.fromResult(decode({ ...options, url }))
      const cap = settings.maxReqTimeout ?? Limits.usual.maxReqTimeout
      return toPlan(yield* planFor(request, settings, cap), request, settings, cap)
    }),
  operate: (url, options) => Effect.flatMap(Effect.fromResult(decode({ ...options, url })), operate)
}
