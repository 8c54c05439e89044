/** `requeue plan`: shows the objects that the queues need on the broker, and which of them exist. */
import { type Adapter, Plan } from "@requeue/core/port"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Cleaning from "../Cleaning.ts"
import * as Operating from "../Operating.ts"
import * as Objects from "../Objects.ts"
import { Output } from "../Output.ts"
import * as Policy from "../Policy.ts"
import * as Target from "../Target.ts"

const flags = {
  ...Target.flags,
  policy: Policy.flag,
  offline: Flag.Boolean("offline").pipe(
    Flag.withDescription(
      "Do not connect: show the plan for the broker's newest version, without the state of the objects"
    ),
    Flag.withDefault(false)
  ),
  mermaid: Flag.Boolean("mermaid").pipe(
    Flag.withDescription("Draw the paths of the messages as a Mermaid flowchart"),
    Flag.withDefault(false)
  ),
  all: Objects.all
}

interface Planned {
  readonly plan: Plan.Plan
  /** The states of the planned objects on the broker; `undefined` if the broker was not asked. */
  readonly inspection: Plan.Inspection | undefined
}

const header = ({ broker, delays, queue }: Plan.Plan): string => `queue ${queue} on ${broker}, delays: ${delays}`

const nothing: Cleaning.Listing = { objects: [], notes: [] }

const planned = (target: Target.Target, offline: boolean, isWhole: boolean) => {
  const requests = target.queues.map(Operating.requestOf)
  if (offline) {
    const found = Effect.forEach(requests, (request) =>
      Effect.map(Operating.plan(target, request), (plan): Planned => ({ plan, inspection: undefined }))
    )
    return Effect.all({ found, stale: Effect.succeed(nothing) })
  }
  return Effect.scoped(
    Effect.flatMap(Operating.open(target), (operator) =>
      Effect.all({
        found: Effect.forEach(requests, (request) => planAndInspect(operator, request)),
        stale: Cleaning.listed(operator, requests, { isWhole })
      })
    )
  )
}

const planAndInspect = (operator: Adapter.Operator, request: Adapter.PlanRequest) =>
  Effect.all({ plan: operator.plan(request), inspection: operator.inspect(request) })

export const plan = Command.make("plan", flags, ({ all, mermaid, offline, policy, ...rest }) =>
  Effect.gen(function* () {
    const output = yield* Output
    const target = yield* Target.resolve(rest, policy)
    const { found, stale } = yield* planned(target, offline || mermaid, Cleaning.isWhole(rest))
    yield* output.result(
      {
        broker: target.name,
        queues: found.map(({ inspection, plan }) => ({ ...plan, objects: inspection?.objects ?? plan.objects })),
        stale
      },
      () =>
        [
          ...found.map(({ inspection, plan }) =>
            mermaid
              ? Plan.mermaid(plan)
              : [
                  header(plan),
                  Objects.counts(plan),
                  Objects.table(inspection?.objects ?? plan.objects, all, output.paint),
                  ...plan.notes.map((note) => `note: ${note}`)
                ].join("\n")
          ),
          Cleaning.text(stale)
        ]
          .filter((text) => text !== "")
          .join("\n\n")
    )
  })
).pipe(
  Command.withDescription(
    "Shows the objects that each queue, with its dead letters and delays, needs on the broker, and their state: + missing, " +
      "~ different, = present, ? unknown. Changes nothing."
  ),
  Command.withShortDescription("The objects that queues need on the broker, and which are missing or different"),
  Command.withExamples([
    { command: "requeue plan", description: "Every queue of the config file's default broker" },
    { command: "requeue plan --offline --queue orders", description: "Without a connection, for a review" },
    { command: "requeue plan --queue orders --mermaid", description: "As a picture" },
    {
      command: "requeue plan --url amqp://localhost --queue orders --policy nsqRequeue",
      description: "Without a config file"
    }
  ])
)
