/** `requeue dead-letters list` and `peek`: show dead letters, in a line each or whole. */
import { DeadLetters } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import * as LetterFilter from "../../LetterFilter.ts"
import * as LetterView from "../../LetterView.ts"
import * as NumberFlag from "../../NumberFlag.ts"
import { Output } from "../../Output.ts"
import * as Partial from "../../Partial.ts"
import * as Table from "../../Table.ts"
import * as Target from "../../Target.ts"

const limit = (standard: number) =>
  NumberFlag.whole("limit", 1, 100_000).pipe(
    Flag.withDescription("How many are shown at most, oldest first"),
    Flag.withDefault(standard)
  )

/** The number of letters among which a filter looks at most. */
const depth = 10_000

const find = Effect.fnUntraced(function* (queue: string, filter: LetterFilter.Filter, limit: number) {
  const dead = yield* DeadLetters.make(queue)
  const total = yield* dead.count
  if (LetterFilter.isEmpty(filter)) {
    const letters = yield* dead.list({ limit })
    return { queue, total, isThrough: false, looked: letters.length, letters, missing: yield* dead.missing }
  }
  const isMeant = LetterFilter.matches(filter, yield* Clock.currentTimeMillis)
  let looked = 0
  const letters = yield* dead.list({
    limit,
    filter: (letter) => {
      looked++
      return isMeant(LetterFilter.subject(letter))
    }
  })
  return { queue, total, isThrough: letters.length < limit, looked, letters, missing: yield* dead.missing }
})

type Found = Effect.Success<ReturnType<typeof find>>

const toJson = (found: ReadonlyArray<Found>) => ({
  queues: found.map(({ letters, looked, queue, total }) => ({
    queue,
    looked,
    total: total ?? null,
    letters: letters.map(LetterView.toJson)
  }))
})

const heading = ({ isThrough, letters, looked, queue, total }: Found): string => {
  const shown = `${letters.length} of ${total ?? looked} dead letters`
  const isPartial = isThrough && total !== undefined && looked < total
  const part = looked === depth && total !== looked ? `, found among the oldest ${depth}` : ""
  const seen = isPartial && part === "" ? `, found among the ${looked} that were looked at` : ""
  return `${queue}: ${shown}${part}${seen}`
}

const run = (
  { dlq, limit, ...flags }: DeadLetterTarget.Flags & LetterFilter.Filter & { readonly limit: number },
  show: (found: Found, now: number) => string
) =>
  Effect.gen(function* () {
    const { result } = yield* Output
    const target = yield* DeadLetterTarget.resolve({ ...flags, dlq })
    const found = yield* Effect.provide(
      Effect.forEach(target.queues, (queue) => find(queue, flags, limit)),
      Target.layer(target)
    )
    const now = yield* Clock.currentTimeMillis
    yield* result({ broker: target.name, ...toJson(found) }, () =>
      found
        .map((each) => [heading(each), ...(each.letters.length === 0 ? [] : [show(each, now)])].join("\n"))
        .join("\n\n")
    )
    yield* Partial.tell(found.flatMap(({ missing }) => missing))
  })

export const list = Command.make(
  "list",
  { ...DeadLetterTarget.flags, ...LetterFilter.flags, limit: limit(20) },
  (flags) =>
    run(flags, ({ letters }, now) =>
      Table.format(
        LetterView.header,
        letters.map((letter) => LetterView.row(letter, now))
      )
    )
).pipe(
  Command.withDescription("Lists dead letters, oldest first, in a line each. With --json, all that is known of each."),
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
  Command.withDescription("Shows dead letters whole: body, headers, error, and every attempt that is remembered."),
  Command.withShortDescription("A dead letter whole"),
  Command.withExamples([
    { command: "requeue dead-letters peek --queue orders", description: "The oldest one" },
    { command: "requeue dead-letters peek --dlq orders.dlq --id order-7", description: "One of them" }
  ])
)
