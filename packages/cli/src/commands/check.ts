/** `requeue check`: whether a broker supports the policies. */
import { type Adapter, ConsumerOptions, Feasibility } from "@requeue/core/port"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Operating from "../Operating.ts"
import { Output } from "../Output.ts"
import * as Policy from "../Policy.ts"
import { Problem } from "../Problem.ts"
import * as Table from "../Table.ts"
import * as Target from "../Target.ts"

/** A requirement of a queue's consumer, and how the broker meets it. */
interface Checked extends Feasibility.Told {
  readonly queue: string
  readonly field: string
}

const colours = { exact: "green", emulated: "green", clamped: "yellow", impossible: "red" } as const

/** Returns a requirement as the queue's plan changes it: refused, or met with rounded delays. */
const planned = (queue: Target.Queue, { plan }: Adapter.Operator) =>
  Effect.match(plan(Operating.requestOf(queue)), {
    onSuccess: ({ lateness }): Checked | undefined =>
      lateness === undefined
        ? undefined
        : { queue: queue.name, field: "retry.backoff", support: "emulated", detail: lateness },
    onFailure: ({ detail, field, remedy }): Checked => ({
      queue: queue.name,
      field,
      support: "impossible",
      detail: `${detail}. ${remedy}`
    })
  })

/** Checks each requirement of a queue's consumer. */
const checked = Effect.fnUntraced(function* (queue: Target.Queue, operator: Adapter.Operator) {
  const { capabilities } = operator
  const { name, options } = queue
  const requirements = Feasibility.check(ConsumerOptions.resolve(options, capabilities.lease), capabilities, name).map(
    ({ support, field }): Checked => ({ queue: name, field, ...Feasibility.describe(support) })
  )
  const changed = yield* planned(queue, operator)
  if (changed === undefined) return requirements
  const isImpossible = ({ field, support }: Checked) => field === changed.field && support === "impossible"
  // A capability that is missing matters more than lateness.
  if (changed.support === "emulated" && requirements.some(isImpossible)) return requirements
  return [...requirements.filter(({ field }) => field !== changed.field), changed]
})

export const check = Command.make("check", { ...Target.flags, policy: Policy.flag }, (flags) =>
  Effect.gen(function* () {
    const { paint, result } = yield* Output
    const target = yield* Target.resolve(flags, flags.policy)
    const found = Effect.flatMap(Operating.open(target), (operator) =>
      Effect.forEach(target.queues, (queue) => checked(queue, operator))
    )
    const requirements = (yield* Effect.scoped(found)).flat()
    const rows = requirements.map(({ detail, field, queue, support }) => [
      queue,
      field,
      paint(colours[support], support),
      detail
    ])
    yield* result({ broker: target.name, requirements }, () =>
      Table.format(["queue", "field", "support", "detail"], rows)
    )
    if (requirements.some(({ support }) => support === "impossible")) return yield* new Problem()
  })
).pipe(
  Command.withDescription(
    "Checks whether the broker supports the retry policies of queues: exact, emulated, clamped or impossible. " +
      "Connects, because support depends on the broker's version. Exit code 1 if something is impossible."
  ),
  Command.withShortDescription("Whether the broker supports the policies"),
  Command.withExamples([
    { command: "requeue check", description: "Every queue of the config file's default broker" },
    { command: "requeue check --broker staging --queue orders --json", description: "One queue, for a script" },
    {
      command: "requeue check --url amqp://localhost --queue orders --policy webhookSender",
      description: "Without a config file"
    }
  ])
)
