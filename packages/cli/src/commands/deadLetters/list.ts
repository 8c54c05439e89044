/** `requeue dead-letters list` and `peek`: show dead letters, in one line each or in full. */
import type { DeadLetters } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import * as LetterFilter from "../../LetterFilter.ts"
import * as LetterView from "../../LetterView.ts"
import * as Looking from "../../Looking.ts"
import * as NumberFlag from "../../NumberFlag.ts"
import { Output } from "../../Output.ts"
import * as Partial from "../../Partial.ts"
import { Problem } from "../../Problem.ts"
import * as Table from "../../Table.ts"
import * as Target from "../../Target.ts"

const limit = (standard: number) =>
  NumberFlag.whole("limit", 1, Looking.limit).pipe(
    Flag.withDescription("The most letters to show, oldest first"),
    Flag.withDefault(standard)
  )

const find = Effect.fnUntraced(function* (
  dead: DeadLetters.DeadLetters,
  filter: LetterFilter.Filter,
  limit: number,
  now: number
) {
  const { queue } = dead
  const { done } = yield* Output
  const show = yield* Looking.progress(queue)
  const isMeant = LetterFilter.matches(filter, now)
  let progress: DeadLetters.Progress = { browsed: 0, total: yield* dead.count }
  const looking = dead.list({
    limit,
    ...(LetterFilter.isEmpty(filter) ? {} : { filter: isMeant }),
    onProgress: (current) => {
      progress = { ...current, total: progress.total }
      show(progress)
    }
  })
  const letters = yield* Effect.ensuring(looking, done)
  const { browsed, total } = progress
  return { queue, total, isThrough: letters.length < limit, browsed, letters, missing: yield* dead.missing }
})

type Found = Effect.Success<ReturnType<typeof find>>

const toJson = (found: ReadonlyArray<Found>) => ({
  queues: found.map(({ letters, browsed, queue, total }) => ({
    queue,
    browsed,
    total: total ?? null,
    letters: letters.map(LetterView.toJson)
  }))
})

const heading = ({ isThrough, letters, browsed, queue, total }: Found): string => {
  const shown = `${letters.length} of ${total ?? browsed} dead letters`
  const isPartial = isThrough && total !== undefined && browsed < total
  return `${queue}: ${shown}${isPartial ? `, found among the ${browsed} that were browsed` : ""}`
}

const run = (
  { dlq, limit, ...flags }: DeadLetterTarget.Flags & LetterFilter.Filter & { readonly limit: number },
  show: (found: Found, now: number, width: number | undefined) => string
) =>
  Effect.gen(function* () {
    const { note, result, width } = yield* Output
    const target = yield* DeadLetterTarget.resolve({ ...flags, dlq })
    const now = yield* Clock.currentTimeMillis
    const work = Effect.gen(function* () {
      const all = yield* DeadLetterTarget.open(target)
      yield* Looking.tellCost(all)
      return yield* Effect.forEach(all, (dead) => find(dead, flags, limit, now))
    })
    const found = yield* Effect.provide(work, Target.layer(target))
    yield* result({ broker: target.name, ...toJson(found) }, () =>
      found
        .map((each) => [heading(each), ...(each.letters.length === 0 ? [] : [show(each, now, width)])].join("\n"))
        .join("\n\n")
    )
    yield* Partial.tell(found.flatMap(({ missing }) => missing))
    // An id that no letter has is a problem, like a missing queue.
    const ids = flags.id.filter((id) => !id.endsWith("*"))
    const shown = new Set(found.flatMap(({ letters }) => letters.map(({ id }) => id)))
    const unseen = found.every(({ isThrough }) => isThrough) ? ids.filter((id) => !shown.has(id)) : []
    if (unseen.length > 0) {
      yield* note(`no dead letter matches --id ${unseen.join(", ")}`)
      return yield* new Problem()
    }
  })

export const list = Command.make(
  "list",
  { ...DeadLetterTarget.flags, ...LetterFilter.flags, limit: limit(20) },
  (flags) =>
    run(flags, ({ letters }, now, width) =>
      Table.format(
        LetterView.header,
        letters.map((letter) => LetterView.row(letter, now)),
        width === undefined ? undefined : { width, cut: LetterView.cut }
      )
    )
).pipe(
  Command.withDescription(
    "Lists dead letters, oldest first, in one line each. --json shows everything known about each. Exit code 1 if no letter has the id of --id."
  ),
  Command.withShortDescription("A line for each dead letter"),
  Command.withExamples([
    { command: "requeue dead-letters list --queue orders", description: "The oldest 20" },
    { command: "requeue dead-letters list -q orders --error timeout --newer-than 1h", description: "Of the last hour" }
  ])
)

export const peek = Command.make(
  "peek",
  { ...DeadLetterTarget.flags, ...LetterFilter.flags, limit: limit(1) },
  (flags) => run(flags, ({ letters }) => letters.map(LetterView.detail).join("\n\n"))
).pipe(
  Command.withDescription(
    "Shows dead letters in full: body, headers, error, and the attempts in their history. Exit code 1 if no letter has the id of --id."
  ),
  Command.withShortDescription("A dead letter in full"),
  Command.withExamples([
    { command: "requeue dead-letters peek --queue orders", description: "The oldest one" },
    { command: "requeue dead-letters peek --dlq orders.dlq --id order-7", description: "One of them" }
  ])
)
