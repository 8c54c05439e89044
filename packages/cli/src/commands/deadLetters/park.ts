/** `requeue dead-letters park`: moves dead letters unchanged to a queue without consumers. */
import { AuditLine, DeadLetters } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Audit from "../../Audit.ts"
import * as Confirmation from "../../Confirmation.ts"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import * as Interruption from "../../Interruption.ts"
import * as LetterFilter from "../../LetterFilter.ts"
import * as Looking from "../../Looking.ts"
import * as NumberFlag from "../../NumberFlag.ts"
import { Output } from "../../Output.ts"
import * as Partial from "../../Partial.ts"
import { Problem } from "../../Problem.ts"
import * as RedriveView from "../../RedriveView.ts"
import * as Target from "../../Target.ts"
import * as TextFlag from "../../TextFlag.ts"

const flags = {
  ...DeadLetterTarget.actingFlags,
  ...LetterFilter.flags,
  ...Audit.flags,
  to: TextFlag.make("to").pipe(
    Flag.withMetavar("QUEUE"),
    Flag.withDescription(
      "The target queue, which must exist. Default: the dead-letter queue's name with .parked, which is created"
    ),
    Flag.optional
  ),
  create: Flag.Boolean("create").pipe(
    Flag.withDescription("Create the queue of --to if it is missing"),
    Flag.withDefault(false)
  ),
  limit: NumberFlag.whole("limit", 1, 1_000_000_000).pipe(
    Flag.withDescription("The most letters of each dead-letter queue. Default: all that are ready when it begins"),
    Flag.optional
  ),
  dryRun: Flag.Boolean("dry-run").pipe(
    Flag.withDescription("Count what would be parked, and move nothing"),
    Flag.withDefault(false)
  ),
  yes: Confirmation.yes
}

/** Returns the report as JSON, with `parked` instead of `redriven`. */
const toJson = (each: RedriveView.Redriven) => {
  const { redriven: parked, ...rest } = RedriveView.toJson(each)
  return { ...rest, parked }
}

export const park = Command.make("park", flags, ({ create, dlq, dryRun, limit, to, yes, ...rest }) =>
  Effect.gen(function* () {
    const output = yield* Output
    const target = yield* DeadLetterTarget.resolve({ ...rest, dlq })
    const isMeant = LetterFilter.matches(rest, yield* Clock.currentTimeMillis)
    const asked = { dryRun, maxRedrives: 0, stopAt: undefined, isParking: true }
    const goal = Option.getOrUndefined(to)
    // The default queue is created; that of --to only with --create.
    const options = { to: goal, create: create || goal === undefined, limit: Option.getOrUndefined(limit) }
    const finished: Array<RedriveView.Redriven> = []
    const operation = {
      id: AuditLine.newId(),
      command: "dead-letters park",
      broker: target.name,
      queues: target.queues,
      filters: rest,
      options
    }
    const parkOne = ({ park, queue }: DeadLetters.DeadLetters) =>
      Effect.gen(function* () {
        const audit = yield* Audit.ofLetters(rest, operation, { to: goal ?? DeadLetters.parkingQueue(queue) })
        const add = (report: DeadLetters.RedriveReport) => Effect.sync(() => void finished.push({ queue, report }))
        const work = Interruption.gently(
          (signal) =>
            park({
              ...options,
              ...target.forced(queue),
              origin: Option.getOrUndefined(rest.origin),
              filter: isMeant,
              dryRun,
              audit: audit(queue),
              signal,
              onProgress: (report) =>
                void Effect.runFork(output.progress(RedriveView.progress({ queue, report }, asked)))
            }),
          add
        )
        yield* add(yield* Effect.ensuring(work, output.done))
      })
    const outcome = () => ({ outcome: "done", queues: finished.map(toJson) })
    const work = Effect.gen(function* () {
      const all = yield* DeadLetterTarget.open(target)
      if (dryRun) yield* Looking.tellCost(all)
      yield* DeadLetterTarget.destination(target, goal, create)
      const which = LetterFilter.isEmpty(rest) ? "all dead letters" : "the dead letters that match the filters"
      const where = goal ?? target.queues.map(DeadLetters.parkingQueue).join(", ")
      const question = `Park ${which} of ${yield* DeadLetterTarget.waiting(all)} in ${where}?`
      if (!dryRun && !yes && !(yield* Confirmation.ask(question))) return []
      const parking = Effect.forEach(all, parkOne)
      yield* dryRun ? parking : Audit.around(rest, operation, outcome)(parking)
      return yield* DeadLetterTarget.missing(all)
    })
    const json = () => ({ broker: target.name, dryRun, interrupted: false, queues: finished.map(toJson) })
    const told = () => finished.map((each) => RedriveView.text(each, asked)).join("\n") || "nothing was parked"
    const interruptible = Effect.onInterrupt(work, () => Interruption.tell(json, told))
    const missing = yield* Effect.provide(interruptible, Target.layer(target))
    yield* output.result(json(), told)
    yield* Partial.tell(missing)
    if (finished.some(RedriveView.isBad)) return yield* new Problem()
  })
).pipe(
  Command.withDescription(
    "Moves dead letters to a queue without consumers. Each is published there " +
      "unchanged, confirmed by the broker, and only then removed. With --dlq you can redrive them from there, or park them back with --to."
  ),
  Command.withShortDescription("Move dead letters aside"),
  Command.withExamples([
    { command: "requeue dead-letters park --queue orders --error 'no sku' --yes", description: "Those of one cause" },
    { command: "requeue dead-letters redrive --dlq orders.dlq.parked", description: "And back to work" },
    {
      command: "requeue dead-letters park --dlq orders.dlq.parked --to orders.dlq",
      description: "Or back to the others"
    }
  ])
)
