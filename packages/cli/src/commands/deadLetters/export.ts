/** `requeue dead-letters export`: writes dead letters as lines of JSON, and removes none. */
import { type DeadLetters, LetterLine } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import * as LetterFilter from "../../LetterFilter.ts"
import * as Looking from "../../Looking.ts"
import * as NewFile from "../../NewFile.ts"
import * as NumberFlag from "../../NumberFlag.ts"
import { Output } from "../../Output.ts"
import { OutputFailed } from "../../OutputFailed.ts"
import * as Partial from "../../Partial.ts"
import * as Target from "../../Target.ts"
import * as TextFlag from "../../TextFlag.ts"

const flags = {
  ...DeadLetterTarget.flags,
  ...LetterFilter.flags,
  limit: NumberFlag.whole("limit", 1, Looking.limit).pipe(
    Flag.withDescription("The most letters of each dead-letter queue, oldest first"),
    Flag.withDefault(Looking.limit)
  ),
  output: TextFlag.make("output").pipe(
    Flag.withAlias("o"),
    Flag.withMetavar("FILE"),
    Flag.withDescription("A new file to write to, which appears only when it is complete. Default: standard output"),
    Flag.optional
  )
}

/** The written letters of a queue. */
interface Written {
  readonly queue: string
  exported: number
}

/** Writes the letters of a queue. */
const write = (
  dead: DeadLetters.DeadLetters,
  filter: (letter: LetterFilter.Subject) => boolean,
  limit: number,
  to: NewFile.NewFile["write"],
  written: Written
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { done } = yield* Output
      const show = yield* Looking.progress(dead.queue)
      const { next, progress } = yield* dead.read({ limit, filter })
      const all = Effect.gen(function* () {
        for (let page = yield* next; page !== undefined; page = yield* next) {
          yield* to(page.map((letter) => `${LetterLine.format(dead.queue, letter)}\n`).join(""))
          written.exported += page.length
          show(progress())
        }
      })
      yield* Effect.ensuring(all, done)
      const { browsed, total } = progress()
      return { ...written, browsed, total: total ?? null }
    })
  )

/** Writes the letters of all queues. If the command ends early, prints its progress. */
const writeAll = (
  all: ReadonlyArray<DeadLetters.DeadLetters>,
  output: Option.Option<string>,
  filter: (letter: LetterFilter.Subject) => boolean,
  limit: number
) =>
  Effect.gen(function* () {
    const { raw } = yield* Output
    const { finish, write: to }: NewFile.NewFile = Option.isSome(output)
      ? yield* NewFile.make("--output", output.value)
      : { write: raw, finish: Effect.void }
    const written: Array<Written> = []
    const progress = () =>
      Option.isSome(output)
        ? `${output.value} was not created`
        : written.map(({ exported, queue }) => `${queue}: exported ${exported}`).join("; ")
    yield* Looking.tellCost(all)
    const each = Effect.forEach(all, (dead) =>
      Effect.suspend(() => {
        const own: Written = { queue: dead.queue, exported: 0 }
        written.push(own)
        return write(dead, filter, limit, to, own)
      })
    )
    return yield* Effect.tap(each, finish).pipe(
      Effect.catchTag("OutputFailed", ({ detail }) => {
        const cut = Option.isSome(output) ? "" : ", and the line after them may be incomplete"
        const whole = `${detail}. ${progress()}${cut}. All letters are still in their queues`
        // A reader that ends early has not received the whole export.
        return Effect.fail(new OutputFailed({ detail: whole, isReaderGone: false }))
      }),
      Effect.onInterrupt(() => Console.error(`requeue: interrupted. ${progress()}`))
    )
  })

export const exportLetters = Command.make("export", flags, ({ dlq, limit, output, ...rest }) =>
  Effect.gen(function* () {
    const { result } = yield* Output
    const target = yield* DeadLetterTarget.resolve({ ...rest, dlq })
    const filter = LetterFilter.matches(rest, yield* Clock.currentTimeMillis)
    const work = Effect.scoped(
      Effect.gen(function* () {
        const all = yield* DeadLetterTarget.open(target)
        const queues = yield* writeAll(all, output, filter, limit)
        return { queues, missing: yield* DeadLetterTarget.missing(all) }
      })
    )
    const { missing, queues } = yield* Effect.provide(work, Target.layer(target))
    const told = queues
      .map(
        ({ exported, browsed, queue, total }) => `${queue}: exported ${exported} of ${total ?? browsed} dead letters`
      )
      .join("\n")
    // Standard output must contain only letters.
    yield* Option.isSome(output)
      ? result({ broker: target.name, queues }, () => told)
      : Console.error(told.replaceAll(/^/gm, "requeue: "))
    yield* Partial.tell(missing)
  })
).pipe(
  Command.withDescription(
    "Writes dead letters as lines of JSON, with body, headers and all metadata, and removes none. " +
      "`requeue dead-letters import` recreates the letters."
  ),
  Command.withShortDescription("Write dead letters to a file"),
  Command.withExamples([
    { command: "requeue dead-letters export --queue orders -o orders.jsonl", description: "Before a purge" },
    { command: "requeue dead-letters export -q orders --error 503 | jq -r .id", description: "The ids of some" }
  ])
)
