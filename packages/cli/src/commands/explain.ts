/** `requeue explain`: describes the configuration of a queue in sentences. */
import { Explanation } from "@requeue/operations"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Output, type Service } from "../Output.ts"
import * as Policy from "../Policy.ts"
import * as Target from "../Target.ts"
import * as TextFlag from "../TextFlag.ts"

const flags = {
  config: Target.flags.config,
  queue: TextFlag.make("queue").pipe(
    Flag.withAlias("q"),
    Flag.withMetavar("NAME"),
    Flag.withDescription("A queue of the config file"),
    Flag.optional
  ),
  policy: Policy.flag
}

const text = ({ about, isDefault, sentences }: Explanation.Part, paint: Service["paint"]): string =>
  [`${about}${isDefault ? paint("dim", " (by default)") : ""}`, ...sentences.map((each) => `  ${each}`)].join("\n")

export const explain = Command.make("explain", flags, ({ config, policy, queue }) =>
  Effect.gen(function* () {
    const { paint, result } = yield* Output
    const { name, options } = yield* Target.policies(config, queue, policy)
    const parts = Explanation.of(name, options)
    yield* result({ queue: Option.getOrNull(queue), parts }, () => parts.map((part) => text(part, paint)).join("\n\n"))
  })
).pipe(
  Command.withDescription(
    "Describes in sentences what the configuration of a queue does, and what it leaves to defaults: retries and their delays, " +
      "dead letters, batches, consumer backoff, limits. No broker is needed."
  ),
  Command.withShortDescription("A queue's configuration in sentences"),
  Command.withExamples([
    { command: "requeue explain --queue orders", description: "A queue of the config file" },
    { command: "requeue explain --policy webhookSender", description: "A preset" }
  ])
)
