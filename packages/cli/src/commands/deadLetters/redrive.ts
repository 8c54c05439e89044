/** `requeue dead-letters redrive`: sends dead letters back to work. */
import { DeadLetters } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Confirmation from "../../Confirmation.ts"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import * as Interruption from "../../Interruption.ts"
import * as LetterFilter from "../../LetterFilter.ts"
import * as NumberFlag from "../../NumberFlag.ts"
import { Output } from "../../Output.ts"
import * as Target from "../../Target.ts"

const flags = {
  ...DeadLetterTarget.flags,
  ...LetterFilter.flags,
  to: Flag.String("to").pipe(
    Flag.withMetavar("QUEUE"),
    Flag.withDescription("Where to. Default: the queue that each letter came from"),
    Flag.optional
  ),
  limit: NumberFlag.whole("limit", 1, 1_000_000_000).pipe(
    Flag.withDescription("How many at most of each dead-letter queue. Default: all that wait when it begins"),
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
    Flag.withDescription("Letters that have been redriven so often already stay: they would only come back"),
    Flag.withDefault(3)
  ),
  dryRun: Flag.Boolean("dry-run").pipe(
    Flag.withDescription("Count what would be redriven, and leave everything where it is"),
    Flag.withDefault(false)
  ),
  yes: Confirmation.yes
}

const total = ({ filtered, guarded, homeless, redriven }: DeadLetters.RedriveReport): number =>
  filtered + guarded + homeless + redriven

const tell = (queue: string, report: DeadLetters.RedriveReport, dryRun: boolean, maxRedrives: number): string => {
  const { filtered, guarded, homeless, redriven } = report
  const others = [
    [filtered, "passed over by the filters"],
    [guarded, `stopped by --max-redrives ${maxRedrives}`],
    [homeless, "of unknown origin, give --to"]
  ] as const
  const passed = others.filter(([count]) => count > 0).map(([count, why]) => `${count} ${why}`)
  const done = `${dryRun ? "would redrive" : "redriven"} ${redriven} of ${total(report)}`
  return `${queue}: ${[done, ...passed].join("; ")}`
}

export const redrive = Command.make("redrive", flags, ({ dlq, dryRun, limit, maxRedrives, rate, to, yes, ...rest }) =>
  Effect.gen(function* () {
    const output = yield* Output
    const target = yield* DeadLetterTarget.resolve({ ...rest, dlq })
    const isMeant = LetterFilter.matches(rest, yield* Clock.currentTimeMillis)
    const work = Effect.gen(function* () {
      const all = yield* Effect.forEach(target.queues, DeadLetters.make)
      const counts = yield* Effect.forEach(all, ({ count }) => count)
      const waiting = all.map(({ queue }, index) => `${queue} (${counts[index] ?? "unknown"} wait)`).join(", ")
      const where = Option.getOrElse(to, () => "the queues they came from")
      const which = LetterFilter.isEmpty(rest) ? "all dead letters" : "the dead letters that the filters mean"
      const question = `Redrive ${which} of ${waiting} to ${where}?`
      if (!dryRun && !yes && !(yield* Confirmation.ask(question))) return undefined
      return yield* Effect.forEach(all, (dead, index) =>
        Interruption.gently(
          (signal) =>
            dead.redrive({
              to: Option.getOrUndefined(to),
              limit: Option.getOrUndefined(limit),
              rate: Option.getOrUndefined(rate),
              filter: (letter) => isMeant(LetterFilter.subject(letter)),
              maxRedrives,
              dryRun,
              signal,
              onProgress: (report) => {
                Effect.runFork(output.progress(`${dead.queue}: ${total(report)} of ${counts[index] ?? "unknown"}`))
              }
            }),
          (report) =>
            Effect.andThen(
              output.done,
              Console.error(`requeue: interrupted. ${tell(dead.queue, report, dryRun, maxRedrives)}`)
            )
        ).pipe(
          Effect.ensuring(output.done),
          Effect.map((report) => ({ queue: dead.queue, ...report }))
        )
      )
    })
    const reports = yield* Effect.provide(work, Target.layer(target))
    yield* output.result({ broker: target.name, dryRun, queues: reports ?? [] }, () =>
      reports === undefined
        ? "nothing was redriven"
        : reports.map(({ queue, ...report }) => tell(queue, report, dryRun, maxRedrives)).join("\n")
    )
  })
).pipe(
  Command.withDescription(
    "Sends dead letters back to work: each is published, confirmed by the broker, and only then removed. Its attempts " +
      "start at 1 again, and its redrive is counted. Asks first, unless --yes or --dry-run is given. Ctrl-C stops between " +
      "two letters; what was redriven until then stays redriven."
  ),
  Command.withShortDescription("Send dead letters back to work"),
  Command.withExamples([
    { command: "requeue dead-letters redrive --queue orders --dry-run", description: "What it would do" },
    {
      command: "requeue dead-letters redrive --queue orders --reason retries-exhausted --rate 10",
      description: "Slowly"
    },
    { command: "requeue dead-letters redrive --dlq old.dlq --to orders --yes", description: "Elsewhere" }
  ])
)
