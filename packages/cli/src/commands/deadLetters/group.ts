/** `requeue dead-letters group`: shows the causes, most frequent first. */
import { DeadLetters, Delay, type Delivery } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Body from "../../Body.ts"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import * as LetterFilter from "../../LetterFilter.ts"
import { Output } from "../../Output.ts"
import * as Table from "../../Table.ts"
import * as Target from "../../Target.ts"

/** The largest number of letters that are grouped. */
const depth = 10_000

const row = ({ count, error, message, newest, oldest, queue, reason }: DeadLetters.Group, now: number) => [
  String(count),
  queue ?? "-",
  reason ?? "-",
  Body.line(Buffer.from(error === undefined ? "-" : `${error}: ${message}`), 60),
  Delay.format(Math.max(0, now - oldest)),
  Delay.format(Math.max(0, now - newest))
]

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
          return { queue, groups: yield* dead.group({ limit: depth, filter }) }
        })
      ),
      Target.layer(target)
    )
    yield* result(
      {
        broker: target.name,
        queues: found.map(({ groups, queue }) => ({
          queue,
          groups: groups.map((each) => ({ ...each, oldest: iso(each.oldest), newest: iso(each.newest) }))
        }))
      },
      () =>
        found
          .map(({ groups, queue }) =>
            groups.length === 0
              ? `${queue}: no dead letters`
              : `${queue}:\n${Table.format(
                  ["count", "from", "reason", "error", "oldest", "newest"],
                  groups.map((each) => row(each, now))
                )}`
          )
          .join("\n\n")
    )
  })
).pipe(
  Command.withDescription(
    "Groups dead letters by origin, reason and error, most frequent first. Looks at the oldest 10,000."
  ),
  Command.withShortDescription("The causes, most frequent first"),
  Command.withExamples([{ command: "requeue dead-letters group --queue orders", description: "Why orders fail" }])
)
