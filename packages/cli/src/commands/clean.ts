/** `requeue clean`: removes objects from the broker that the configuration no longer uses, and loses no message. */
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Cleaning from "../Cleaning.ts"
import * as Confirmation from "../Confirmation.ts"
import * as Interruption from "../Interruption.ts"
import * as Operating from "../Operating.ts"
import { Output } from "../Output.ts"
import * as Policy from "../Policy.ts"
import { Problem } from "../Problem.ts"
import * as Target from "../Target.ts"
import * as TextFlag from "../TextFlag.ts"
import { UsageError } from "../UsageError.ts"

const flags = {
  ...Target.flags,
  policy: Policy.flag,
  prefix: TextFlag.make("prefix").pipe(
    Flag.withMetavar("PREFIX"),
    Flag.withDescription("Also remove everything under this former prefix, which no program uses any more"),
    Flag.optional
  ),
  dryRun: Flag.Boolean("dry-run").pipe(
    Flag.withDescription("List what would be removed, and remove nothing"),
    Flag.withDefault(false)
  ),
  yes: Confirmation.yes
}

export const clean = Command.make("clean", flags, ({ dryRun, policy, prefix, yes, ...rest }) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { done, paint, progress, result } = yield* Output
      const target = yield* Target.resolve(rest, policy)
      const operator = Cleaning.of(yield* Operating.open(target))
      if (operator === undefined) {
        const detail = `the adapter of ${target.resolved.scheme}: has nothing to clean`
        return yield* new UsageError({ detail, remedy: "Run it on a broker with delay queues, such as RabbitMQ" })
      }
      const requests = target.queues.map(Operating.requestOf)
      const scope = { isWhole: Cleaning.isWhole(rest), prefix: Option.getOrUndefined(prefix) }
      const found = yield* operator.stale(requests, scope)
      const say = (objects: ReadonlyArray<object>, moved: number, text: () => string) =>
        result({ broker: target.name, dryRun, moved, objects, notes: found.notes }, () =>
          [text(), ...found.notes.map((note) => `note: ${note}`)].join("\n")
        )
      if (found.objects.length === 0) return yield* say([], 0, () => "nothing is stale")
      if (dryRun) return yield* say(found.objects, 0, () => Cleaning.text({ ...found, notes: [] }))
      const messages = found.objects.reduce((sum, one) => sum + (one.messages ?? 0), 0)
      const question = `Remove ${found.objects.length} objects of ${target.name}, and move their ${messages} messages to their queues?`
      if (!yes && !(yield* Confirmation.ask(question))) return yield* say([], 0, () => "nothing was removed")
      yield* progress("removing stale objects, which takes 15 seconds or more")
      const report = yield* Interruption.gently(
        (signal) => operator.clean(requests, scope, signal),
        ({ moved, objects }) =>
          Interruption.tell(
            () => ({ broker: target.name, dryRun, moved, objects, notes: found.notes }),
            () => `Removed ${objects.filter(({ outcome }) => outcome === "removed").length}`
          )
      ).pipe(Effect.ensuring(done))
      yield* say(report.objects, report.moved, () =>
        [Cleaning.outcomes(report.objects, paint), `moved ${report.moved} messages`].join("\n")
      )
      if (report.objects.some(({ outcome }) => outcome === "kept")) return yield* new Problem()
    })
  )
).pipe(
  Command.withDescription(
    "Removes delay queues, exchanges and bindings that the queues no longer use, such as those of a former policy or " +
      "topology. Their messages move to their queues, with the rest of their delays. Objects in use stay, " +
      "with exit code 1. An interruption loses no message. Asks first, unless --yes or --dry-run is given."
  ),
  Command.withShortDescription("Remove objects that the queues no longer use, without losing a message"),
  Command.withExamples([
    { command: "requeue clean --dry-run", description: "Stale objects, for the whole config file" },
    { command: "requeue clean --yes", description: "Removed, in a script" },
    { command: "requeue clean --queue orders", description: "Only objects with the name of this queue" },
    { command: "requeue clean --prefix former --yes", description: "Also objects of another prefix" }
  ])
)
