/** `requeue dead-letters purge`: removes dead letters for good. */
import { AuditLine, DeadLetters } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Audit from "../../Audit.ts"
import * as Confirmation from "../../Confirmation.ts"
import * as DeadLetterTarget from "../../DeadLetterTarget.ts"
import * as Interruption from "../../Interruption.ts"
import * as LetterFilter from "../../LetterFilter.ts"
import * as Looking from "../../Looking.ts"
import { Output } from "../../Output.ts"
import * as Partial from "../../Partial.ts"
import * as RemovalFlag from "../../RemovalFlag.ts"
import * as Target from "../../Target.ts"

const flags = {
  ...DeadLetterTarget.actingFlags,
  ...LetterFilter.flags,
  ...Audit.flags,
  all: RemovalFlag.all("dead letters"),
  dryRun: Flag.Boolean("dry-run").pipe(
    Flag.withDescription("Count what would be removed, and remove nothing"),
    Flag.withDefault(false)
  ),
  yes: Confirmation.yes
}

/** Describes counted letters that were not removed. */
const kept = ({ held = 0 }: { readonly held?: number }): string =>
  held === 0 ? "" : `; ${held} more were counted, which another reader holds or which are delayed`

export const purge = Command.make("purge", flags, ({ all: isAll, dlq, dryRun, yes, ...rest }) =>
  Effect.gen(function* () {
    const { result } = yield* Output
    const target = yield* DeadLetterTarget.resolve({ ...rest, dlq })
    const isMeant = LetterFilter.matches(rest, yield* Clock.currentTimeMillis)
    const isFiltered = !LetterFilter.isEmpty(rest)
    const which = `dead letters of ${target.queues.join(", ")}`
    yield* RemovalFlag.check({ isAll, isFiltered }, which, "--older-than 30d")
    // With --all, the broker removes all at once.
    const selection: DeadLetters.Selection = isAll ? { all: true } : { filter: isMeant }
    const finished: Array<{ readonly queue: string; readonly removed: number; readonly held?: number }> = []
    const operation = {
      id: AuditLine.newId(),
      command: "dead-letters purge",
      broker: target.name,
      queues: target.queues,
      filters: rest,
      options: { all: isAll }
    }
    const audit = yield* Audit.ofLetters(rest, operation, { isRemoval: true })
    const audited = Audit.around(rest, operation, () => ({ outcome: "done", queues: finished }))
    const work = Effect.gen(function* () {
      const all = yield* DeadLetterTarget.open(target)
      if (dryRun && !isAll) yield* Looking.tellCost(all)
      const meant = isAll ? "all dead letters" : "the dead letters that match the filters"
      const question = `Remove ${meant} of ${yield* DeadLetterTarget.waiting(all)} for good?`
      if (!dryRun && !yes && !(yield* Confirmation.ask(question))) return []
      const purging = Effect.forEach(all, ({ count, purge, queue }) =>
        Effect.gen(function* () {
          const counted = isAll ? yield* count : undefined
          const add = (removed: number) =>
            Effect.sync(() => {
              const held = counted === undefined ? undefined : Math.max(0, counted - removed)
              finished.push({ queue, removed, ...(held === undefined ? {} : { held }) })
            })
          yield* add(
            yield* Interruption.gently(
              (signal) =>
                purge({
                  ...selection,
                  ...target.forced(queue),
                  origin: Option.getOrUndefined(rest.origin),
                  audit: audit(queue),
                  dryRun,
                  signal
                }),
              add
            )
          )
        })
      )
      yield* dryRun ? purging : audited(purging)
      return yield* DeadLetterTarget.missing(all)
    })
    const json = () => ({ broker: target.name, dryRun, queues: finished })
    const told = () =>
      finished
        .map((each) => `${each.queue}: ${dryRun ? "would remove" : "removed"} ${each.removed}${kept(each)}`)
        .join("\n") || "nothing was removed"
    const interruptible = Effect.onInterrupt(work, () =>
      Interruption.tell(json, () => `${told()}\n  ${Interruption.goOn}`)
    )
    const missing = yield* Effect.provide(interruptible, Target.layer(target))
    yield* result(json(), told)
    yield* Partial.tell(missing)
  })
).pipe(
  Command.withDescription(
    "Removes the dead letters that match the filters for good, or all of them with --all. Asks first, with the number in each queue, unless --yes or --dry-run is given."
  ),
  Command.withShortDescription("Remove dead letters for good"),
  Command.withExamples([
    {
      command: "requeue dead-letters purge --queue orders --older-than 30d --dry-run",
      description: "How many are old"
    },
    { command: "requeue dead-letters purge --dlq orders.dlq --all --yes", description: "All, in a script" }
  ])
)
