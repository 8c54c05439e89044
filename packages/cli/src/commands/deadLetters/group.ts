/** `requeue dead-letters group`: shows the causes, most frequent first. */
import type { DeadLetters } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Age from "../../Age.ts"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import * as LetterFilter from "../../LetterFilter.ts"
import * as Looking from "../../Looking.ts"
import * as NumberFlag from "../../NumberFlag.ts"
import { Output } from "../../Output.ts"
import * as Partial from "../../Partial.ts"
import * as Printable from "../../Printable.ts"
import * as Table from "../../Table.ts"
import * as Target from "../../Target.ts"

const header = ["count", "from", "reason", "error", "oldest", "newest", "oldest at", "newest at", "example"]

/** The columns that are cut on a narrow terminal. */
const cut = ["error", "example"]

const row = (group: DeadLetters.Group, now: number): ReadonlyArray<string> => {
  const { count, error, id, message, missed, newest, oldest, pattern, queue, reason } = group
  return [
    missed === 0 ? String(count) : `${count}+`,
    Printable.line(queue ?? "-"),
    reason ?? "-",
    // A broker may have refused a dead letter with both.
    Printable.line([error, pattern].filter(Boolean).join(": ") || "-"),
    Age.show(oldest, now),
    Age.show(newest, now),
    Age.iso(oldest) ?? "-",
    Age.iso(newest) ?? "-",
    Printable.line(message === pattern ? id : `${id}: ${message}`)
  ]
}

const show = (queue: string, groups: DeadLetters.Groups, now: number, width: number | undefined): string => {
  const { browsed, other, total } = groups
  if (browsed === 0) return `${queue}: no dead letters`
  const meant = groups.reduce((sum, { count }) => sum + count, other)
  const filtered = meant === browsed ? "" : `, ${meant} of them match the filters`
  const heading = `${queue}: browsed ${browsed}${total === undefined ? "" : ` of ${total}`} dead letters${filtered}`
  return [
    heading,
    ...(groups.length === 0
      ? []
      : [
          Table.format(
            header,
            groups.map((each) => row(each, now)),
            width === undefined ? undefined : { width, cut }
          )
        ]),
    ...(other === 0
      ? []
      : [
          `${other} more are in none of these ${groups.length} groups, which are those with the most letters. A count ` +
            "with + is a lower bound"
        ])
  ].join("\n")
}

const flags = {
  ...DeadLetterTarget.flags,
  ...LetterFilter.flags,
  limit: NumberFlag.whole("limit", 1, Looking.limit).pipe(
    Flag.withDescription("The most letters to group, oldest first"),
    Flag.withDefault(Looking.limit)
  )
}

const find = Effect.fnUntraced(function* (
  dead: DeadLetters.DeadLetters,
  given: LetterFilter.Filter,
  limit: number,
  now: number
) {
  const filter = LetterFilter.matches(given, now)
  const onProgress = yield* Looking.progress(dead.queue)
  const { done } = yield* Output
  const groups = yield* Effect.ensuring(dead.group({ limit, filter, onProgress }), done)
  return { queue: dead.queue, groups, missing: yield* dead.missing }
})

export const group = Command.make("group", flags, ({ dlq, limit, ...rest }) =>
  Effect.gen(function* () {
    const { result, width } = yield* Output
    const target = yield* DeadLetterTarget.resolve({ ...rest, dlq })
    const now = yield* Clock.currentTimeMillis
    const work = Effect.gen(function* () {
      const all = yield* DeadLetterTarget.open(target)
      yield* Looking.tellCost(all)
      return yield* Effect.forEach(all, (dead) => find(dead, rest, limit, now))
    })
    const found = yield* Effect.provide(work, Target.layer(target))
    yield* result(
      {
        broker: target.name,
        queues: found.map(({ groups, queue }) => ({
          queue,
          browsed: groups.browsed,
          total: groups.total ?? null,
          groups: groups.map((each) => ({
            ...each,
            oldest: Age.iso(each.oldest) ?? null,
            newest: Age.iso(each.newest) ?? null
          })),
          other: groups.other
        }))
      },
      () => found.map(({ groups, queue }) => show(queue, groups, now, width)).join("\n\n")
    )
    yield* Partial.tell(found.flatMap(({ missing }) => missing))
  })
).pipe(
  Command.withDescription(
    "Groups dead letters by cause, most frequent first: by origin, reason, error and the pattern of its message, which is " +
      "the message without numbers, ids, addresses and quoted text. Browses the oldest 100,000, and removes none."
  ),
  Command.withShortDescription("The causes, most frequent first"),
  Command.withExamples([{ command: "requeue dead-letters group --queue orders", description: "Why orders fail" }])
)
