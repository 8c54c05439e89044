/** `requeue dead-letters`: the commands for dead letters. */
import * as Command from "effect/cli/Command"
import { exportLetters } from "./export.ts"
import { group } from "./group.ts"
import { importLetters } from "./import.ts"
import { list, peek } from "./list.ts"
import { park } from "./park.ts"
import { purge } from "./purge.ts"
import { redrive } from "./redrive.ts"

export const deadLetters = Command.make("dead-letters").pipe(
  Command.withDescription(
    "Operates on dead letters: those of --queue, whose policy names the dead-letter queues, or those of --dlq."
  ),
  Command.withShortDescription("List, group, peek, redrive, park, purge, export and import dead letters"),
  Command.withExamples([
    {
      command: "requeue dead-letters group --queue orders",
      description: "Paged? Why they fail, and an example of each cause"
    },
    { command: "requeue dead-letters peek --queue orders --id order-7", description: "That example, in full" },
    {
      command: "requeue dead-letters redrive --queue orders --error timeout --stages 1,10,100 --stop-at 10%",
      description: "After the fix: those of one cause back to work, while they succeed"
    },
    { command: "requeue status --queue orders", description: "Whether all is well" }
  ]),
  Command.withSubcommands([list, group, peek, redrive, park, purge, exportLetters, importLetters])
)
