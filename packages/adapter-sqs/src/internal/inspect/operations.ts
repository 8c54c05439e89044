/** A queue's plan for operators: shows it, compares it with the queues on SQS, and creates them. */
import { type Adapter, ConfigurationError, Plan, RetryPolicy } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { decode, type Settings } from "../../SqsOptions.ts"
import * as SqsPlan from "../../SqsPlan.ts"
import * as Capabilities from "../capabilities.ts"
import { connect } from "../lazyClient.ts"
import { listed } from "../declare/objects.ts"
import { redriveOf } from "../declare/verify.ts"
import * as Queues from "../declare/declare.ts"

const toPlanRequest = ({ queue, retry }: Adapter.PlanRequest): SqsPlan.Request => ({
  queue,
  retry,
  deadLetterQueues: RetryPolicy.deadLetterQueues(retry, queue)
})

const planFor = (
  request: Adapter.PlanRequest,
  settings: Settings
): Effect.Effect<SqsPlan.Plan, ConfigurationError.ConfigurationError> =>
  ConfigurationError.orFail(SqsPlan.make(toPlanRequest(request), settings))

const show = (planned: SqsPlan.Queue): Plan.PlannedObject => ({
  kind: "queue",
  name: planned.name.name,
  details: listed(planned)
    .map(([attribute, value]) => `${attribute}=${value}`)
    .join(" ")
})

const delays = (fifo: boolean, { fifoRetry, inFlightLimit }: Settings): string => {
  if (fifo) return fifoRetry === "block" ? "visibility; the group waits" : "copies at the end of the group"
  return inFlightLimit === 0 ? "delayed copies" : "visibility; delayed copies beyond 12h from receipt"
}

/** Returns the names of queues on SQS, keyed by the program's names. */
const namesOf = ({ queues }: SqsPlan.Plan): ReadonlyMap<string, string> =>
  new Map(queues.map(({ name, queue }) => [queue, name.name]))

const flows = (plan: SqsPlan.Plan, { queue, retry }: Adapter.PlanRequest): ReadonlyArray<Plan.Flow> => {
  const names = namesOf(plan)
  const ours = [...Plan.retries(queue, retry), ...Plan.deadLetters(queue, retry)].map(({ from, label, to }) => ({
    from: names.get(from) ?? from,
    to: names.get(to) ?? to,
    label
  }))
  const theirs = plan.queues.flatMap(({ name, redrive }) =>
    redrive === undefined
      ? []
      : [
          {
            from: name.name,
            to: redrive.to.name,
            label: `dead-lettered by SQS after ${redrive.maxReceiveCount} receives`
          }
        ]
  )
  return [...ours, ...theirs]
}

const toPlan = (plan: SqsPlan.Plan, request: Adapter.PlanRequest, settings: Settings): Plan.Plan => ({
  broker: "sqs",
  queue: request.queue,
  delays: delays(plan.queues.at(-1)!.name.fifo, settings),
  objects: plan.queues.map(show),
  flows: flows(plan, request),
  notes: plan.notes
})

/** Returns attributes that differ from the plan, but with which a consumer can run. */
const differences = ({ attributes, redrive }: SqsPlan.Queue, found: SqsPlan.Attributes): ReadonlyArray<string> => {
  const others = Object.keys(attributes).filter((name) => found[name] !== attributes[name])
  const unset = redrive !== undefined && redriveOf(found) === undefined ? ["RedrivePolicy"] : []
  return [...others, ...unset].map((name) => `${name} is ${found[name] ?? "not set"}`)
}

const inspected = (
  planned: SqsPlan.Queue,
  found: SqsPlan.Attributes | undefined,
  findings: ReadonlyArray<SqsPlan.Finding>
): Plan.Inspected => {
  if (found === undefined) return { ...show(planned), state: "missing" }
  const bad = findings.filter(({ isGood, queue }) => !isGood && queue === planned.queue)
  const why = bad.length > 0 ? bad.map(({ detail }) => detail) : differences(planned, found)
  return { ...show(planned), state: bad.length > 0 ? "different" : "present", why: why.join(", ") || undefined }
}

const toFinding =
  (names: ReadonlyMap<string, string>) =>
  ({ attribute, detail, isGood, queue, remedy }: SqsPlan.Finding): Plan.Finding => ({
    about: `${names.get(queue)} ${attribute}`,
    verdict: isGood ? "good" : "bad",
    detail: remedy === "" ? detail : `${detail}. ${remedy}`
  })

const operate = Effect.fnUntraced(function* (settings: Settings) {
  // Operators may create queues even if the program is not configured to.
  const queues = Queues.make(yield* connect(settings), { ...settings, queues: "create" })
  const operator: Adapter.Operator = {
    capabilities: Capabilities.make(settings),
    plan: (request) => Effect.map(planFor(request, settings), (plan) => toPlan(plan, request, settings)),
    inspect: (request) =>
      Effect.gen(function* () {
        const plan = yield* queues.adapted(yield* planFor(request, settings))
        const found = yield* queues.inspect(plan)
        const findings = SqsPlan.verify(plan, found)
        return {
          objects: plan.queues.map((planned) => inspected(planned, found.get(planned.name.name), findings)),
          findings: findings.map(toFinding(namesOf(plan)))
        }
      }),
    create: (request) =>
      Effect.andThen(planFor(request, settings), Effect.asVoid(queues.ensure(toPlanRequest(request))))
  }
  return operator
})

/** The adapter's part of the CLI. */
export const operations: Adapter.Operations = {
  plan: (request, url, options) =>
    Effect.gen(function* () {
      const settings = yield* Effect.fromResult(decode({ ...options, url }))
      return toPlan(yield* planFor(request, settings), request, settings)
    }),
  operate: (url, options) => Effect.flatMap(Effect.fromResult(decode({ ...options, url })), operate)
}
