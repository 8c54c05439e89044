/** A queue's plan for operators: shown, compared with what Acme has, and created. */
import { type Adapter, Deadlines, Plan, Timers } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { decode, type Settings } from "../../AcmeOptions.ts"
import * as AcmePlan from "../../AcmePlan.ts"
import { capabilities } from "../capabilities.ts"
import { connect } from "../client.ts"
import { declare } from "../declare/declare.ts"
import { call } from "../toBrokerError.ts"

const toPlan = (request: Adapter.PlanRequest): Plan.Plan => ({
  broker: "acme",
  queue: request.queue,
  delays: "by Acme itself",
  objects: AcmePlan.queuesOf(AcmePlan.make(request)).map((name) => ({ kind: "queue", name, details: "" })),
  flows: [...Plan.retries(request.queue, request.retry), ...Plan.deadLetters(request.queue, request.retry)],
  notes: []
})

const operate = Effect.fnUntraced(function* (settings: Settings) {
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const client = yield* connect(settings, () => {})
  const deadlines = Deadlines.make(yield* Timers.make, settings.timeout, true)
  const inspected = (object: Plan.PlannedObject) =>
    Effect.map(
      call({ operation: "inspect", queue: object.name }, deadlines, () => client.exists(object.name)),
      (exists): Plan.Inspected => ({ ...object, state: exists ? "present" : "missing" })
    )
  const operator: Adapter.Operator = {
    capabilities,
    plan: (request) => Effect.succeed(toPlan(request)),
    inspect: (request) =>
      Effect.map(Effect.forEach(toPlan(request).objects, inspected), (objects) => ({ objects, findings: [] })),
    create: (request) => {
      const tools = { client, deadlines, settings: { ...settings, create: true }, now }
      return declare(AcmePlan.queuesOf(AcmePlan.make(request)), tools)
    }
  }
  return operator
})

/** The answers to `requeue check`, `plan`, `verify` and `create`. */
export const operations: Adapter.Operations = {
  plan: (request, url, options) => Effect.as(Effect.fromResult(decode({ ...options, url })), toPlan(request)),
  operate: (url, options) => Effect.flatMap(Effect.fromResult(decode({ ...options, url })), operate)
}
