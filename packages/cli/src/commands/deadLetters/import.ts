/** `requeue dead-letters import`: publishes the letters of an export. */
import { Broker, type BrokerError } from "@requeue/core"
import { Feasibility, type Outgoing } from "@requeue/core/port"
import { LetterLine } from "@requeue/operations"
import * as Command from "effect/cli/Command"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { open } from "node:fs/promises"
import { resolve } from "node:path"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import * as Existing from "../../Existing.ts"
import * as Interruption from "../../Interruption.ts"
import * as Lines from "../../Lines.ts"
import * as NumberFlag from "../../NumberFlag.ts"
import { Output } from "../../Output.ts"
import { Problem } from "../../Problem.ts"
import { Process } from "../../Process.ts"
import * as Target from "../../Target.ts"
import * as TextFlag from "../../TextFlag.ts"
import { UsageError } from "../../UsageError.ts"

const { queue: _, ...place } = Target.flags

const flags = {
  ...place,
  file: Argument.String("file").pipe(
    Argument.withDescription("The file. Without it, lines are read from standard input"),
    Argument.optional
  ),
  to: TextFlag.make("to").pipe(
    Flag.withMetavar("QUEUE"),
    Flag.withDescription("The target queue. Default: the dead-letter queue that each letter was in"),
    Flag.optional
  ),
  create: Flag.Boolean("create").pipe(Flag.withDescription("Create missing queues"), Flag.withDefault(false)),
  fromLine: NumberFlag.whole("from-line", 1, Number.MAX_SAFE_INTEGER).pipe(
    Flag.withDescription("The first line to import, to go on after an import that stopped"),
    Flag.withDefault(1)
  ),
  dryRun: Flag.Boolean("dry-run").pipe(
    Flag.withDescription("Check every line, and publish nothing"),
    Flag.withDefault(false)
  )
}

/** The number of letters to publish at a time. */
const batch = 100

interface Line {
  readonly number: number
  /** The text of the line; `undefined` if it is not UTF-8. */
  readonly text: string | undefined
}

/** The progress of an import. */
interface Report {
  /** The number of published and confirmed letters, by queue. */
  readonly imported: Map<string, number>
  /** Lines after the first line that was not imported, whose letters the broker has accepted. */
  readonly ahead: Array<number>
  /** Lines whose letters got no answer of the broker: the letters may exist. */
  readonly unconfirmed: Array<number>
  /** The number of the next line. */
  next: number
  /** Why the import stopped. */
  problem: string | undefined
}

const countOf = ({ imported }: Report): number => [...imported.values()].reduce((sum, count) => sum + count, 0)

const text = (report: Report, dryRun: boolean): string => {
  const each = [...report.imported].map(
    ([queue, count]) => `${queue}: ${dryRun ? "would import" : "imported"} ${count}`
  )
  const { ahead, problem, unconfirmed } = report
  return [
    ...(each.length === 0 ? ["nothing was imported"] : each),
    ...(problem === undefined ? [] : [problem, goOn(report, dryRun)]),
    ...(ahead.length === 0 ? [] : [`Of the lines after that, these are imported as well: ${ahead.join(", ")}`]),
    ...(unconfirmed.length === 0
      ? []
      : [`The broker did not confirm the letters of these lines: ${unconfirmed.join(", ")}`])
  ].join("\n")
}

/** Advises how to go on after a problem. A dry run imports nothing, so its advice names no line. */
const goOn = ({ next }: Report, dryRun: boolean): string =>
  dryRun
    ? `Nothing was imported. Fix line ${next}, or remove it, and run the same command again`
    : `Lines before ${next} are imported. Give --from-line ${next} to go on`

const toJson = ({ ahead, imported, next, problem, unconfirmed }: Report, dryRun: boolean, fromLine: number) => ({
  queues: [...imported].map(([queue, count]) => ({ queue, imported: count })),
  ahead,
  unconfirmed,
  next: dryRun ? fromLine : next,
  problem: problem ?? null
})

const linesOf = Effect.fnUntraced(function* (file: Option.Option<string>) {
  const { cwd, stdin } = yield* Process
  const name = Option.getOrElse(file, () => "standard input")
  const unreadable = (error: unknown) =>
    new UsageError({
      detail: String(error).replace(resolve(cwd(), name), () => name),
      remedy: "Give a file that can be read"
    })
  // A stream that opens the file itself could fail before it has a listener.
  const input = Option.isNone(file)
    ? stdin
    : yield* Effect.tryPromise({
        try: async () => (await open(resolve(cwd(), file.value))).createReadStream(),
        catch: unreadable
      })
  // Else an open pipe would keep the process alive.
  yield* Effect.addFinalizer(() => Effect.sync(() => input.destroy()))
  const each = Lines.of(input)
  let number = 0
  return Effect.tryPromise({
    try: async (): Promise<Line | undefined> => {
      const { done, value } = await each.next()
      return done === true ? undefined : { number: ++number, text: value }
    },
    catch: unreadable
  })
})

interface Numbered {
  readonly number: number
  readonly letter: Outgoing.Outgoing
}

/** Records the letters of a finished publish. Letters after the first failed one may be published as well. */
const book = (report: Report, letters: ReadonlyArray<Numbered>, error: BrokerError.BrokerError | undefined): void => {
  for (const [at, { letter, number }] of letters.entries()) {
    const status =
      error === undefined ? "sent" : (error.entries?.[at]?.status ?? (error.isRetryable ? "unknown" : "failed"))
    if (status === "sent") report.imported.set(letter.queue, (report.imported.get(letter.queue) ?? 0) + 1)
    if (status === "unknown") report.unconfirmed.push(number)
    if (status !== "sent") report.problem ??= `line ${number}: ${error!.message}`
    if (report.problem === undefined) report.next = number + 1
    else if (status === "sent") report.ahead.push(number)
  }
}

const run = (
  read: Effect.Effect<Line | undefined, UsageError>,
  options: {
    readonly to: string | undefined
    readonly create: boolean
    readonly fromLine: number
    readonly dryRun: boolean
    /** Names of queues that the advice may suggest. */
    readonly known: ReadonlyArray<string>
  },
  report: Report,
  signal: AbortSignal
) =>
  Effect.gen(function* () {
    const { capabilities, publish } = yield* Broker.Broker
    const output = yield* Output
    const known = new Set<string>()
    let waiting: Array<Numbered> = []

    const send = Effect.gen(function* () {
      const letters = waiting
      waiting = []
      if (letters.length === 0) return
      for (const queue of new Set(letters.map(({ letter }) => letter.queue))) {
        if (!known.has(queue) && !options.create)
          yield* Existing.check([queue], { known: options.known, besides: "Give --create to create the queue" })
        known.add(queue)
      }
      const sent = options.dryRun ? undefined : yield* Effect.result(publish(letters.map(({ letter }) => letter)))
      book(report, letters, sent !== undefined && Result.isFailure(sent) ? sent.failure : undefined)
      yield* output.progress(`imported ${countOf(report)}`)
    })

    for (let line = yield* read; line !== undefined && !signal.aborted; line = yield* read) {
      const { number, text } = line
      if (number < options.fromLine || text?.trim() === "") continue
      const letter = text === undefined ? { detail: "the line is not in UTF-8" } : LetterLine.parse(text, options.to)
      const problem = "detail" in letter ? letter.detail : Feasibility.refusalOf(letter, capabilities)?.message
      if ("detail" in letter || problem !== undefined) {
        yield* send
        report.problem ??= `line ${number}: ${problem}`
        return
      }
      waiting.push({ number, letter })
      if (waiting.length >= batch) yield* send
      if (report.problem !== undefined) return
    }
    if (!signal.aborted) yield* send
  })

export const importLetters = Command.make("import", flags, ({ create, dryRun, file, fromLine, to, ...rest }) =>
  Effect.gen(function* () {
    const output = yield* Output
    const target = yield* Target.place({ ...rest, queue: [] })
    const read = yield* linesOf(file)
    const report: Report = { imported: new Map(), ahead: [], unconfirmed: [], next: fromLine, problem: undefined }
    const known = target.configured.flatMap((queue) => [...DeadLetterTarget.of(queue), queue.name])
    const options = { to: Option.getOrUndefined(to), create, fromLine, dryRun, known }
    const told = () => text(report, dryRun)
    const json = () => ({ broker: target.name, dryRun, ...toJson(report, dryRun, fromLine) })
    const work = Interruption.gently(
      (signal) => run(read, options, report, signal),
      () => Interruption.tell(json, () => (dryRun ? told() : `${told()}. Give --from-line ${report.next} to go on`))
    ).pipe(
      Effect.ensuring(output.done),
      // If the broker is away or a queue is missing, the import stops as well, and prints its progress.
      Effect.tapError(() => (countOf(report) === 0 ? Effect.void : Console.error(`requeue: ${told()}`)))
    )
    yield* Effect.provide(work, Target.layer(target))
    yield* output.result(json(), told)
    if (report.problem !== undefined) return yield* new Problem()
  }).pipe(Effect.scoped)
).pipe(
  Command.withDescription(
    "Publishes the letters of `requeue dead-letters export` unchanged, each confirmed by the broker. It " +
      "stops at a line that is not a valid letter, or that the broker refuses, and reports which lines are imported."
  ),
  Command.withShortDescription("Publish dead letters from a file"),
  Command.withExamples([
    { command: "requeue dead-letters import orders.jsonl --dry-run", description: "Whether every line can be read" },
    { command: "requeue dead-letters import orders.jsonl --to attic", description: "Into another queue" }
  ])
)
