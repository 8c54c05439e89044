/** `requeue create`: creates the objects that the queues need on the broker. */
import type { Adapter } from "@requeue/core/port"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Objects from "../Objects.ts"
import * as Operating from "../Operating.ts"
import { Output } from "../Output.ts"
import * as Policy from "../Policy.ts"
import * as Target from "../Target.ts"

/** Creates a queue's objects, and returns those that were missing before. */
const created = Effect.fnUntraced(function* (operator: Adapter.Operator, request: Adapter.PlanRequest) {
  const before = yield* operator.inspect(request)
  yield* operator.create(request)
  return { queue: request.queue, created: before.objects.filter(({ state }) => state === "missing") }
})

export const create = Command.make(
  "create",
  { ...Target.flags, policy: Policy.flag, all: Objects.all },
  ({ all, policy, ...rest }) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { done, paint, progress, result } = yield* Output
        const target = yield* Target.resolve(rest, policy)
        const operator = yield* Operating.open(target)
        // All are checked first: a policy that no consumer could start with creates nothing.
        yield* Effect.forEach(target.queues, (queue) => Operating.verify(target, queue, operator))
        const made = yield* Effect.forEach(target.queues.map(Operating.requestOf), (request) =>
          Effect.andThen(progress(`creating ${request.queue}`), created(operator, request))
        ).pipe(Effect.ensuring(done))
        yield* result({ broker: target.name, queues: made }, () =>
          made
            .map(({ created, queue }) =>
              created.length === 0
                ? `queue ${queue}: nothing was missing`
                : `queue ${queue}: created\n${Objects.table(created, all, paint)}`
            )
            .join("\n\n")
        )
      })
    )
).pipe(
  Command.withDescription(
    "Creates the missing objects of the queues: queues, dead-letter queues, delays. Existing objects stay unchanged; one with " +
      "other settings is an error, and so is a policy that requeue check refuses. requeue plan shows what would be created."
  ),
  Command.withShortDescription("Create the objects that the queues need on the broker"),
  Command.withExamples([
    { command: "requeue create", description: "For every queue of the config file's default broker" },
    { command: "requeue create --url amqp://localhost --queue orders", description: "Without a config file" }
  ])
)
