/** `requeue check`: whether a broker can do what the policies ask. */
import { type Adapter, ConsumerOptions, Delay, Feasibility } from "@requeue/core"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Operating from "../Operating.ts"
import { Output } from "../Output.ts"
import * as Policy from "../Policy.ts"
import { Problem } from "../Problem.ts"
import * as Table from "../Table.ts"
import * as Target from "../Target.ts"

/** A demand of a queue's consumer, and how the broker meets it. */
interface Checked {
  readonly queue: string
  readonly wish: string
  readonly answer: keyof typeof colours
  readonly detail: string
}

const show = (answer: Feasibility.Support): Pick<Checked, "answer" | "detail"> => {
  switch (answer._tag) {
    case "Exact":
      return { answer: "exact", detail: "" }
    case "Emulated":
      return { answer: "emulated", detail: answer.how }
    case "Clamped":
      return { answer: "clamped", detail: `from ${Delay.format(answer.from)} to ${Delay.format(answer.to)}` }
    case "Impossible":
      return { answer: "impossible", detail: `${answer.why}. ${answer.remedy}` }
  }
}

const colours = { exact: "green", emulated: "green", clamped: "yellow", impossible: "red" } as const

/** Answers the demand for which this queue cannot be planned, though the broker has the capability; `undefined` where it can. */
const unplanned = (queue: Target.Queue, { plan }: Adapter.Operator) =>
  Effect.match(plan(Operating.requestOf(queue)), {
    onSuccess: () => undefined,
    onFailure: ({ detail, field, remedy }): Checked => ({
      queue: queue.name,
      wish: field,
      answer: "impossible",
      detail: `${detail}. ${remedy}`
    })
  })

/** Checks each demand of a queue's consumer. */
const checked = Effect.fnUntraced(function* (queue: Target.Queue, operator: Adapter.Operator) {
  const { capabilities } = operator
  const { name, options } = queue
  const demands = Feasibility.check(ConsumerOptions.resolve(options, capabilities.lease), capabilities, name).map(
    ({ answer, field }): Checked => ({ queue: name, wish: field, ...show(answer) })
  )
  const refused = yield* unplanned(queue, operator)
  return refused === undefined ? demands : [...demands.filter(({ wish }) => wish !== refused.wish), refused]
})

export const check = Command.make("check", { ...Target.flags, policy: Policy.flag }, (flags) =>
  Effect.gen(function* () {
    const { paint, result } = yield* Output
    const target = yield* Target.resolve(flags, flags.policy)
    const found = Effect.flatMap(Operating.open(target), (operator) =>
      Effect.forEach(target.queues, (queue) => checked(queue, operator))
    )
    const demands = (yield* Effect.scoped(found)).flat()
    const rows = demands.map(({ answer, detail, queue, wish }) => [queue, wish, paint(colours[answer], answer), detail])
    yield* result({ broker: target.name, wishes: demands }, () =>
      Table.format(["queue", "wish", "answer", "detail"], rows)
    )
    if (demands.some(({ answer }) => answer === "impossible")) return yield* new Problem()
  })
).pipe(
  Command.withDescription(
    "Checks the retry policies of queues against what the broker can do: exact, emulated, clamped or impossible. " +
      "Connects, because what a broker can do depends on its version. Exit code 1 when something is impossible."
  ),
  Command.withShortDescription("Whether the broker can do what the policies ask"),
  Command.withExamples([
    { command: "requeue check", description: "Every queue of the config file's default broker" },
    { command: "requeue check --broker staging --queue orders --json", description: "One queue, for a script" },
    {
      command: "requeue check --url amqp://localhost --queue orders --policy webhookSender",
      description: "Without a config file"
    }
  ])
)
