/** `requeue verify`: checks that the objects on the broker are as the policies need them. */
import { type Adapter, Plan } from "@requeue/core/port"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Cleaning from "../Cleaning.ts"
import * as Objects from "../Objects.ts"
import * as Operating from "../Operating.ts"
import { Output, type Service } from "../Output.ts"
import * as Policy from "../Policy.ts"
import { Problem } from "../Problem.ts"
import * as Table from "../Table.ts"
import * as Target from "../Target.ts"

interface Verified extends Plan.Inspection {
  readonly queue: string
}

const colours = { good: "green", bad: "red", unknown: "gray" } as const

const show = ({ findings, objects, queue }: Verified, all: boolean, paint: Service["paint"]): string => {
  const amiss = all ? objects : objects.filter(({ state }) => state !== "present")
  const counted = `${objects.length - objects.filter(({ state }) => state !== "present").length} of ${objects.length}`
  const rows = findings.map(({ about, detail, verdict }) => [paint(colours[verdict], verdict), about, detail])
  return [
    `queue ${queue}: ${counted} objects are as planned`,
    ...(amiss.length === 0 ? [] : [Objects.table(amiss, all, paint)]),
    ...(rows.length === 0 ? [] : [Table.format(["verdict", "about", "detail"], rows)])
  ].join("\n")
}

const verified = (operator: Adapter.Operator, request: Adapter.PlanRequest) =>
  Effect.map(operator.inspect(request), (inspection): Verified => ({ queue: request.queue, ...inspection }))

export const verify = Command.make(
  "verify",
  { ...Target.flags, policy: Policy.flag, all: Objects.all },
  ({ all, policy, ...rest }) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { paint, progress, done, result } = yield* Output
        const target = yield* Target.resolve(rest, policy)
        const operator = yield* Operating.open(target)
        const found = yield* Effect.forEach(target.queues.map(Operating.requestOf), (request) =>
          Effect.andThen(progress(`checking ${request.queue}`), verified(operator, request))
        ).pipe(Effect.ensuring(done))
        const requests = target.queues.map(Operating.requestOf)
        const stale = yield* Cleaning.listed(operator, requests, { isWhole: Cleaning.isWhole(rest) })
        yield* result({ broker: target.name, queues: found, stale }, () =>
          [...found.map((queue) => show(queue, all, paint)), Cleaning.text(stale)]
            .filter((text) => text !== "")
            .join("\n\n")
        )
        if (found.some(Plan.isAmiss)) return yield* new Problem()
      })
    )
).pipe(
  Command.withDescription(
    "Checks that the broker has all objects that the queues need, with the settings that the policies need. " +
      "Changes nothing. Exit code 1 if something is missing, different or unsafe."
  ),
  Command.withShortDescription("Whether the queues are on the broker as the policies need them"),
  Command.withExamples([
    { command: "requeue verify", description: "Every queue of the config file's default broker" },
    { command: "requeue verify --queue orders --json", description: "One queue, for a script" },
    { command: "requeue verify --url amqp://localhost --queue orders", description: "Without a config file" }
  ])
)
