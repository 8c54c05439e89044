/** `requeue delayed list` and `count`: the delayed messages. */
import { Delay } from "@requeue/core"
import { DelayedMessages } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Age from "../../Age.ts"
import * as Body from "../../Body.ts"
import * as DelayedFilter from "../../DelayedFilter.ts"
import * as Existing from "../../Existing.ts"
import * as NumberFlag from "../../NumberFlag.ts"
import { Output } from "../../Output.ts"
import * as Policy from "../../Policy.ts"
import * as Printable from "../../Printable.ts"
import * as Table from "../../Table.ts"
import * as Target from "../../Target.ts"

/** Returns a note if browsing did not reach the end. */
export const part = ({ isWhole, browsed }: DelayedMessages.Browsed): string =>
  isWhole ? "" : `, among the ${browsed} that were browsed; there are more`

/** Returns the delayed messages of each queue that the flags name. */
export const ofEach = <A extends Partial<DelayedMessages.Browsed> | undefined, E, R>(
  { policy, ...flags }: Target.Flags & { readonly policy: Option.Option<string> },
  run: (delayed: DelayedMessages.DelayedMessages) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const target = yield* Target.resolve(flags, policy)
    const known = target.configured.map((queue) => queue.name)
    const each = Effect.forEach(target.queues, ({ name, options: { retry } }) =>
      Effect.gen(function* () {
        const found = yield* run(yield* DelayedMessages.make(name, { retry }))
        // Messages may be delayed for a queue that is gone. If there are none, its name may be wrong.
        if (found?.browsed === 0) yield* Existing.check([name], { known })
        return { queue: name, ...found }
      })
    )
    return { broker: target.name, queues: yield* Effect.provide(each, Target.layer(target)) }
  })

const time = (millis: number): string => new Date(millis).toISOString()

const toJson = (message: DelayedMessages.DelayedMessage) => {
  const { attempts, due, firstPublished, headers, history, id, native } = message
  return {
    id,
    body: Body.toJson(Body.plain(message)),
    headers,
    native: Body.plainFacts(native),
    firstPublished: Age.iso(firstPublished) ?? null,
    attempts,
    due: due === undefined ? null : time(due),
    history: history.map((attempt) => ({ ...attempt, at: time(attempt.at) }))
  }
}

const header = ["id", "due in", "next attempt", "last error", "age"]

const row = (message: DelayedMessages.DelayedMessage, now: number): ReadonlyArray<string> => {
  const { attempts, due, firstPublished, id } = message
  const error = DelayedFilter.errorOf(message)
  return [
    Printable.line(id),
    due === undefined ? "-" : Delay.format(Math.max(0, Math.ceil((due - now) / 1000) * 1000)),
    String(attempts),
    error === "" ? "-" : Printable.line(error),
    Age.show(firstPublished, now)
  ]
}

/** The flags of every command of delayed messages. */
export const flags = { ...Target.flags, policy: Policy.flag, ...DelayedFilter.flags }

export const list = Command.make(
  "list",
  {
    ...flags,
    limit: NumberFlag.whole("limit", 1, 10_000).pipe(
      Flag.withDescription("The most messages to show, the soonest due first"),
      Flag.withDefault(20)
    )
  },
  (given) =>
    Effect.gen(function* () {
      const { result, width } = yield* Output
      const now = yield* Clock.currentTimeMillis
      const filter = DelayedFilter.matches(given, now)
      const { broker, queues } = yield* ofEach(given, (delayed) => delayed.list({ limit: given.limit, filter }))
      const fit = width === undefined ? undefined : { width, cut: ["last error"] }
      const json = queues.map(({ messages, ...found }) => ({ ...found, messages: messages.map(toJson) }))
      yield* result({ broker, queues: json }, () =>
        queues
          .map(({ messages, queue, selected, ...browsed }) => {
            const heading = `${queue}: ${messages.length} of ${selected} delayed messages${part(browsed)}`
            const rows = messages.map((message) => row(message, now))
            return messages.length === 0 ? heading : `${heading}\n${Table.format(header, rows, fit)}`
          })
          .join("\n\n")
      )
    })
).pipe(
  Command.withDescription(
    "Lists delayed messages, such as retries in backoff, the soonest due first. --json shows everything known about each."
  ),
  Command.withShortDescription("A line for each delayed message"),
  Command.withExamples([
    { command: "requeue delayed list --queue orders", description: "The 20 that are due first" },
    { command: "requeue delayed list -q orders --error timeout --due-after 1h", description: "Some of the later ones" }
  ])
)

export const count = Command.make("count", flags, (given) =>
  Effect.gen(function* () {
    const { result } = yield* Output
    const filter = DelayedFilter.matches(given, yield* Clock.currentTimeMillis)
    const { broker, queues } = yield* ofEach(given, (delayed) => delayed.count({ filter }))
    yield* result({ broker, queues }, () =>
      queues.map(({ queue, selected, ...browsed }) => `${queue}: ${selected}${part(browsed)}`).join("\n")
    )
  })
).pipe(
  Command.withDescription(
    "Counts the delayed messages of a queue by browsing them. The count is exact, also if queues share their delays."
  ),
  Command.withShortDescription("The number of delayed messages"),
  Command.withExamples([
    {
      command: "requeue delayed count --queue orders --due-within 5m",
      description: "Those that are due in the next minutes"
    }
  ])
)
