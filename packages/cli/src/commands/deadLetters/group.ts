/** `requeue dead-letters group`: shows the causes, most frequent first. */
import { DeadLetters, Delay, type Delivery } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Body from "../../Body.ts"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import * as LetterFilter from "../../LetterFilter.ts"
import { Output } from "../../Output.ts"
import * as Partial from "../../Partial.ts"
import * as Table from "../../Table.ts"
import * as Target from "../../Target.ts"

/** The largest number of letters that are grouped. */
const depth = 10_000

const header = ["count", "from", "reason", "error", "oldest", "newest", "example"]

const line = (text: string, width: number): string => Body.line(Buffer.from(text), width)

const row = (group: DeadLetters.Group, now: number): ReadonlyArray<string> => {
  const { count, error, id, message, newest, oldest, pattern, queue, reason } = group
  return [
    String(count),
    queue ?? "-",
    reason ?? "-",
    // A broker may have refused a dead letter that had both.
    line([error, pattern].filter(Boolean).join(": ") || "-", 60),
    Delay.format(Math.max(0, now - oldest)),
    Delay.format(Math.max(0, now - newest)),
    line(message === pattern ? id : `${id}: ${message}`, 300)
  ]
}

const show = (queue: string, groups: DeadLetters.Groups, now: number): string => {
  const { looked, other, total } = groups
  if (looked === 0) return `${queue}: no dead letters`
  const meant = groups.reduce((sum, { count }) => sum + count, other)
  const filtered = meant === looked ? "" : `, ${meant} of them meant by the filters`
  const heading = `${queue}: looked at ${looked}${total === undefined ? "" : ` of ${total}`} dead letters${filtered}`
  return [
    heading,
    ...(groups.length === 0
      ? []
      : [
          Table.format(
            header,
            groups.map((each) => row(each, now))
          )
        ]),
    ...(other === 0 ? [] : [`${other} more have other causes than these ${groups.length}`])
  ].join("\n")
}

const iso = (millis: number): string => new Date(millis).toISOString()

export const group = Command.make("group", { ...DeadLetterTarget.flags, ...LetterFilter.flags }, ({ dlq, ...flags }) =>
  Effect.gen(function* () {
    const { result } = yield* Output
    const target = yield* DeadLetterTarget.resolve({ ...flags, dlq })
    const now = yield* Clock.currentTimeMillis
    const found = yield* Effect.provide(
      Effect.forEach(target.queues, (queue) =>
        Effect.gen(function* () {
          const dead = yield* DeadLetters.make(queue)
          const isMeant = LetterFilter.matches(flags, now)
          const filter = (letter: Delivery.Delivery) => isMeant(LetterFilter.subject(letter))
          return { queue, groups: yield* dead.group({ limit: depth, filter }), missing: yield* dead.missing }
        })
      ),
      Target.layer(target)
    )
    yield* result(
      {
        broker: target.name,
        queues: found.map(({ groups, queue }) => ({
          queue,
          looked: groups.looked,
          total: groups.total ?? null,
          groups: groups.map((each) => ({ ...each, oldest: iso(each.oldest), newest: iso(each.newest) })),
          other: groups.other
        }))
      },
      () => found.map(({ groups, queue }) => show(queue, groups, now)).join("\n\n")
    )
    yield* Partial.tell(found.flatMap(({ missing }) => missing))
  })
).pipe(
  Command.withDescription(
    "Groups dead letters by cause, most frequent first: by origin, reason, error and the pattern of its message, which is " +
      "the message without numbers, ids, addresses and quoted text. Looks at the oldest 10,000."
  ),
  Command.withShortDescription("The causes, most frequent first"),
  Command.withExamples([{ command: "requeue dead-letters group --queue orders", description: "Why orders fail" }])
)
