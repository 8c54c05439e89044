/** `requeue dead-letters redrive`: sends dead letters back to work. */
import { AuditLine, type DeadLetters } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
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
import * as RedriveStages from "../../RedriveStages.ts"
import * as RedriveView from "../../RedriveView.ts"
import * as Target from "../../Target.ts"
import * as TextFlag from "../../TextFlag.ts"
import { UsageError } from "../../UsageError.ts"
import { edit } from "./edit.ts"

const flags = {
  ...DeadLetterTarget.actingFlags,
  ...LetterFilter.flags,
  ...RedriveStages.flags,
  ...Audit.flags,
  to: TextFlag.make("to").pipe(
    Flag.withMetavar("QUEUE"),
    Flag.withDescription("The target queue, which must exist. Default: the queue that each letter came from"),
    Flag.optional
  ),
  create: Flag.Boolean("create").pipe(
    Flag.withDescription("Create a target queue that is missing"),
    Flag.withDefault(false)
  ),
  limit: NumberFlag.whole("limit", 1, 1_000_000_000).pipe(
    Flag.withDescription("The most letters of each dead-letter queue. Default: all that are ready when it begins"),
    Flag.optional
  ),
  rate: NumberFlag.positive("rate", 100_000).pipe(
    Flag.filter(
      (value) => value >= 0.001,
      (value) => `must be at least 0.001, got ${value}`
    ),
    Flag.withMetavar("PER_SECOND"),
    Flag.withDescription("Letters per second at most. Default: no limit"),
    Flag.optional
  ),
  maxRedrives: NumberFlag.whole("max-redrives", 0, 1_000_000_000).pipe(
    Flag.withDescription("Pass over letters that were redriven this often: they would only come back"),
    Flag.withDefault(3)
  ),
  dryRun: Flag.Boolean("dry-run").pipe(
    Flag.withDescription("Count what would be redriven, and move nothing"),
    Flag.withDefault(false)
  ),
  edit: Flag.Boolean("edit").pipe(
    Flag.withDescription(
      "Edit one letter, headers and body, in $VISUAL or $EDITOR. The original is removed once the edited copy has succeeded"
    ),
    Flag.withDefault(false)
  ),
  yes: Confirmation.yes
}

/** Refuses the flags that concern several letters. */
const alone = (given: Readonly<Record<string, unknown>>): Effect.Effect<void, UsageError> => {
  const [name] = Object.keys(given).filter((each) => given[each] !== undefined)
  if (name === undefined) return Effect.void
  const flag = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  const remedy = "--edit acts on one letter"
  return Effect.fail(new UsageError({ detail: `--edit and --${flag} do not go together`, remedy }))
}

/** Collects the reports of the finished queues. */
const reports = (broker: string, asked: RedriveView.Asked) => {
  const finished: Array<RedriveView.Redriven> = []
  let underway: RedriveView.Redriven | undefined
  /** Returns the reports, including that of the queue in progress. */
  const all = () => (underway === undefined ? finished : [...finished, underway])
  const text = (some: ReadonlyArray<RedriveView.Redriven>): string =>
    some.map((each) => RedriveView.text(each, asked)).join("\n")
  return {
    finished,
    show: (each: RedriveView.Redriven | undefined) => (underway = each),
    add: (queue: string, report: DeadLetters.RedriveReport) =>
      Effect.sync(() => {
        underway = undefined
        finished.push({ queue, report })
      }),
    told: () => text(finished),
    toldAll: () => text(all()),
    json: () => ({ broker, dryRun: asked.dryRun, interrupted: false, queues: all().map(RedriveView.toJson) }),
    outcome: (): Audit.Outcome => ({
      outcome: finished.findLast(({ report }) => report.stoppedBy !== undefined)?.report.stoppedBy ?? "done",
      queues: all().map(RedriveView.toJson)
    })
  }
}

export const redrive = Command.make(
  "redrive",
  flags,
  ({ create, dlq, dryRun, edit: isEdit, limit, maxRedrives, rate, to, yes, ...rest }) =>
    Effect.gen(function* () {
      const output = yield* Output
      const target = yield* DeadLetterTarget.resolve({ ...rest, dlq })
      const limits = {
        to: Option.getOrUndefined(to),
        create,
        limit: Option.getOrUndefined(limit),
        rate: Option.getOrUndefined(rate)
      }
      const isMeant = LetterFilter.matches(rest, yield* Clock.currentTimeMillis)
      const operation = Option.getOrElse(rest.operation, AuditLine.newId)
      const staged = RedriveStages.of(rest, target, to, isEdit)
      if (isEdit) {
        yield* alone({ dryRun: dryRun || undefined, stages: staged.stages, limit: limits.limit, rate: limits.rate })
        return yield* edit(target, {
          broker: target.name,
          to,
          create,
          yes,
          isMeant,
          filters: rest,
          audit: rest,
          options: { wait: staged.wait, watch: staged.watch, operation }
        })
      }
      const asked = { dryRun, maxRedrives, stopAt: dryRun ? undefined : staged.stopAt }
      const { add, finished, json, outcome, show, told, toldAll } = reports(target.name, asked)
      const options = { ...limits, origin: Option.getOrUndefined(rest.origin), maxRedrives, ...staged }
      const command = { id: operation, command: "dead-letters redrive", broker: target.name, queues: target.queues }
      const audit = yield* Audit.ofLetters(rest, command, { to: limits.to })
      const redriveOne = ({ queue, redrive }: DeadLetters.DeadLetters) =>
        Interruption.gently(
          (signal) =>
            redrive({
              ...options,
              ...target.forced(queue),
              filter: isMeant,
              dryRun,
              audit: audit(queue),
              operation,
              signal,
              onProgress: (report) => {
                show({ queue, report })
                Effect.runFork(output.progress(RedriveView.progress({ queue, report }, asked)))
              }
            }),
          (report) => add(queue, report)
        ).pipe(
          Effect.ensuring(output.done),
          // The error has its own report.
          Effect.tapError(() => Effect.sync(() => show(undefined))),
          Effect.flatMap((report) => add(queue, report))
        )
      const audited = Audit.around(rest, { ...command, filters: rest, options }, outcome)
      const work = Effect.gen(function* () {
        const all = yield* DeadLetterTarget.open(target)
        if (dryRun) yield* Looking.tellCost(all)
        else if (staged.wait !== undefined) yield* RedriveStages.tellUntold
        yield* DeadLetterTarget.destination(target, limits.to, create)
        const waiting = yield* DeadLetterTarget.waiting(all)
        const where = Option.getOrElse(to, () => "the queues they came from")
        const which = LetterFilter.isEmpty(rest) ? "all dead letters" : "the dead letters that match the filters"
        const question = `Redrive ${which} of ${waiting} to ${where}?`
        if (!dryRun && !yes && !(yield* Confirmation.ask(question))) return []
        yield* dryRun ? Effect.forEach(all, redriveOne) : audited(Effect.forEach(all, redriveOne))
        return yield* DeadLetterTarget.missing(all)
      })
      // The error itself reports on the queue that it stopped at.
      const said = Effect.suspend(() => (finished.length > 0 && !output.json ? Console.error(told()) : Effect.void))
      const interrupted = Interruption.tell(json, () => toldAll() || "nothing was redriven")
      const missing = yield* work.pipe(
        Effect.onInterrupt(() => interrupted),
        Effect.provide(Target.layer(target)),
        Effect.tapError(() => said)
      )
      yield* output.result(json(), () => (finished.length === 0 ? "nothing was redriven" : told()))
      yield* Partial.tell(missing)
      if (finished.some(RedriveView.isBad)) return yield* new Problem()
    })
).pipe(
  Command.withDescription(
    "Sends dead letters back to work: each is published, confirmed by the broker, and only then removed. Its attempts " +
      "start at 1 again, and its redrives are counted. Asks first, unless --yes or --dry-run is given. Ctrl-C ends it at once; " +
      "redriven letters stay redriven, and the same command goes on with the rest. A letter that the broker " +
      "refuses stays, is listed, and makes the exit code 1. With --stages, --stop-at or --wait it works in stages: after each, " +
      "it waits for the outcome of the letters, and it stops with exit code 1 if too many come back."
  ),
  Command.withShortDescription("Send dead letters back to work"),
  Command.withExamples([
    { command: "requeue dead-letters redrive --queue orders --dry-run", description: "What it would do" },
    {
      command: "requeue dead-letters redrive --queue orders --reason retries-exhausted --rate 10",
      description: "Slowly"
    },
    {
      command: "requeue dead-letters redrive --queue orders --stages 1,10,100 --stop-at 10%",
      description: "In stages, while letters succeed"
    },
    {
      command: "requeue dead-letters redrive --queue orders --id order-7 --edit",
      description: "One, with another body"
    },
    { command: "requeue dead-letters redrive --dlq old.dlq --to orders --yes", description: "Elsewhere" }
  ])
)
