/** `requeue delayed purge`: removes delayed messages. */
import type { DelayedMessages } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Confirmation from "../../Confirmation.ts"
import * as DelayedFilter from "../../DelayedFilter.ts"
import * as Interruption from "../../Interruption.ts"
import { Output } from "../../Output.ts"
import * as RemovalFlag from "../../RemovalFlag.ts"
import { flags as common, ofEach, part } from "./list.ts"

const flags = {
  ...common,
  all: RemovalFlag.all("delayed messages"),
  dryRun: Flag.Boolean("dry-run").pipe(
    Flag.withDescription("Count what would be removed, and remove nothing"),
    Flag.withDefault(false)
  ),
  yes: Confirmation.yes
}

export const purge = Command.make("purge", flags, ({ all: isAll, dryRun, yes, ...given }) =>
  Effect.gen(function* () {
    const { result } = yield* Output
    const isMeant = DelayedFilter.matches(given, yield* Clock.currentTimeMillis)
    yield* RemovalFlag.check({ isAll, isFiltered: !DelayedFilter.isEmpty(given) }, "delayed messages", "--error 503")
    const selection: DelayedMessages.PurgeOptions = isAll ? { all: true } : { filter: isMeant }
    const finished: Array<{ readonly queue: string } & Partial<DelayedMessages.Purged>> = []
    const removal = ofEach(given, ({ purge, queue }) =>
      Effect.gen(function* () {
        const which = isAll ? "all delayed messages" : "the delayed messages that match the filters"
        const question = `Remove ${which} of ${queue} for good?`
        const isWanted = dryRun || yes || (yield* Confirmation.ask(question))
        const add = (purged?: DelayedMessages.Purged) => Effect.sync(() => void finished.push({ queue, ...purged }))
        if (!isWanted) return yield* Effect.as(add(), undefined)
        const purging = Interruption.gently((signal) => purge({ ...selection, dryRun, signal }), add)
        return yield* Effect.tap(purging, add)
      })
    )
    const told = () =>
      finished
        .map(({ isWhole = true, browsed = 0, queue, removed }) =>
          removed === undefined
            ? `${queue}: nothing was removed`
            : `${queue}: ${dryRun ? "would remove" : "removed"} ${removed}${part({ isWhole, browsed })}`
        )
        .join("\n") || "nothing was removed"
    const { broker } = yield* Effect.onInterrupt(removal, () =>
      Interruption.tell(
        () => ({ dryRun, queues: finished }),
        () => `${told()}\n  ${Interruption.goOn}`
      )
    )
    yield* result({ broker, dryRun, queues: finished }, told)
  })
).pipe(
  Command.withDescription(
    "Removes the delayed messages that match the filters for good, or all of them with --all. Asks first, " +
      "unless --yes or --dry-run is given. A message that becomes due meanwhile is removed or delivered."
  ),
  Command.withShortDescription("Remove delayed messages for good"),
  Command.withExamples([
    { command: "requeue delayed purge --queue orders --error 503 --dry-run", description: "How many would go" },
    { command: "requeue delayed purge --queue orders --id order-7 --yes", description: "One of them, in a script" }
  ])
)
