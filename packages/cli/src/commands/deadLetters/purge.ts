/** `requeue dead-letters purge`: removes all dead letters, for good. */
import * as DeadLetters from "@requeue/core/DeadLetters"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Confirmation from "../../Confirmation.ts"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import { Output } from "../../Output.ts"
import * as Target from "../../Target.ts"

const flags = {
  ...DeadLetterTarget.flags,
  dryRun: Flag.Boolean("dry-run").pipe(
    Flag.withDescription("Count what would be removed, and leave everything where it is"),
    Flag.withDefault(false)
  ),
  yes: Confirmation.yes
}

export const purge = Command.make("purge", flags, ({ dryRun, yes, ...rest }) =>
  Effect.gen(function* () {
    const { result } = yield* Output
    const target = yield* DeadLetterTarget.resolve(rest)
    const work = Effect.gen(function* () {
      const all = yield* Effect.forEach(target.queues, DeadLetters.make)
      const counted = yield* Effect.forEach(all, ({ count, queue }) =>
        Effect.map(count, (waiting) => ({ queue, removed: waiting ?? null }))
      )
      const waiting = counted.map(({ queue, removed }) => `${queue} (${removed ?? "unknown"})`).join(", ")
      if (dryRun) return counted
      if (!yes && !(yield* Confirmation.ask(`Remove all dead letters of ${waiting} for good?`))) return undefined
      return yield* Effect.forEach(all, ({ purge, queue }) => Effect.map(purge, (removed) => ({ queue, removed })))
    })
    const removed = yield* Effect.provide(work, Target.layer(target))
    yield* result({ broker: target.name, dryRun, queues: removed ?? [] }, () =>
      removed === undefined
        ? "nothing was removed"
        : removed
            .map(
              (each) => `${each.queue}: ${dryRun ? "would remove" : "removed"} ${each.removed ?? "an unknown number"}`
            )
            .join("\n")
    )
  })
).pipe(
  Command.withDescription(
    "Removes all dead letters of a queue for good. Asks first, unless --yes or --dry-run is given."
  ),
  Command.withShortDescription("Remove dead letters for good"),
  Command.withExamples([
    { command: "requeue dead-letters purge --queue orders --dry-run", description: "How many there are" },
    { command: "requeue dead-letters purge --dlq orders.dlq --yes", description: "In a script" }
  ])
)
