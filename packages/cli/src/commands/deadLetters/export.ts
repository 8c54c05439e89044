/** `requeue dead-letters export`: writes dead letters as lines of JSON, and leaves them where they are. */
import type { DeadLetters, Delivery } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { open as openFile } from "node:fs/promises"
import { resolve } from "node:path"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import * as LetterFilter from "../../LetterFilter.ts"
import * as LetterLine from "../../LetterLine.ts"
import * as Looking from "../../Looking.ts"
import * as NumberFlag from "../../NumberFlag.ts"
import { Output } from "../../Output.ts"
import * as Partial from "../../Partial.ts"
import { Process } from "../../Process.ts"
import * as Target from "../../Target.ts"
import * as TextFlag from "../../TextFlag.ts"
import { UsageError } from "../../UsageError.ts"

const flags = {
  ...DeadLetterTarget.flags,
  ...LetterFilter.flags,
  limit: NumberFlag.whole("limit", 1, Looking.limit).pipe(
    Flag.withDescription("How many of each dead-letter queue at most, oldest first"),
    Flag.withDefault(Looking.limit)
  ),
  output: TextFlag.make("output").pipe(
    Flag.withAlias("o"),
    Flag.withMetavar("FILE"),
    Flag.withDescription("A new file to write to. Default: standard output"),
    Flag.optional
  )
}

type Write = (text: string) => Effect.Effect<void, UsageError>

/** A new file, for as long as the scope lives. One that is there may be somebody's only copy. */
const fileOf = (name: string): Effect.Effect<Write, UsageError, Process | Scope.Scope> =>
  Effect.gen(function* () {
    const { cwd } = yield* Process
    const path = resolve(cwd(), name)
    const failed = (error: unknown) =>
      // With the name that was given, and not with the absolute path.
      new UsageError({
        detail: `--output: ${String(error).replace(path, () => name)}`,
        remedy: "Give a new file that can be written"
      })
    const file = yield* Effect.acquireRelease(
      Effect.tryPromise({ try: () => openFile(path, "wx"), catch: failed }),
      (handle) => Effect.promise(() => handle.close())
    )
    return (text) => Effect.asVoid(Effect.tryPromise({ try: () => file.appendFile(text), catch: failed }))
  })

/** Writes the letters of a queue, and answers how many. */
const write = (
  dead: DeadLetters.DeadLetters,
  filter: (letter: Delivery.Delivery) => boolean,
  limit: number,
  to: Write
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { done } = yield* Output
      const show = yield* Looking.progress(dead.queue)
      const { next, progress } = yield* dead.read({ limit, filter })
      let written = 0
      const all = Effect.gen(function* () {
        for (let page = yield* next; page !== undefined; page = yield* next) {
          yield* to(page.map((letter) => `${LetterLine.format(dead.queue, letter)}\n`).join(""))
          written += page.length
          show(progress())
        }
      })
      yield* Effect.ensuring(all, done).pipe(
        Effect.onInterrupt(() => Console.error(`requeue: interrupted. ${dead.queue}: exported ${written}`))
      )
      const { looked, total } = progress()
      return { queue: dead.queue, exported: written, looked, total: total ?? null }
    })
  )

export const exportLetters = Command.make("export", flags, ({ dlq, limit, output, ...rest }) =>
  Effect.gen(function* () {
    const { raw, result } = yield* Output
    const target = yield* DeadLetterTarget.resolve({ ...rest, dlq })
    const isMeant = LetterFilter.matches(rest, yield* Clock.currentTimeMillis)
    const filter = (letter: Delivery.Delivery) => isMeant(LetterFilter.subject(letter))
    const work = Effect.scoped(
      Effect.gen(function* () {
        const all = yield* DeadLetterTarget.open(target)
        const to: Write = Option.isSome(output) ? yield* fileOf(output.value) : raw
        yield* Looking.tellCost(all)
        const queues = yield* Effect.forEach(all, (dead) => write(dead, filter, limit, to))
        return { queues, missing: yield* DeadLetterTarget.missing(all) }
      })
    )
    const { missing, queues } = yield* Effect.provide(work, Target.layer(target))
    const told = queues
      .map(({ exported, looked, queue, total }) => `${queue}: exported ${exported} of ${total ?? looked} dead letters`)
      .join("\n")
    // Where the letters are, nothing else may be.
    yield* Option.isSome(output)
      ? result({ broker: target.name, queues }, () => told)
      : Console.error(told.replaceAll(/^/gm, "requeue: "))
    yield* Partial.tell(missing)
  })
).pipe(
  Command.withDescription(
    "Writes dead letters as lines of JSON, with body, headers and all metadata, and leaves them where they are. " +
      "`requeue dead-letters import` makes the same letters of them."
  ),
  Command.withShortDescription("Write dead letters to a file"),
  Command.withExamples([
    { command: "requeue dead-letters export --queue orders -o orders.jsonl", description: "Before a purge" },
    { command: "requeue dead-letters export -q orders --error 503 | jq -r .id", description: "The ids of some" }
  ])
)
