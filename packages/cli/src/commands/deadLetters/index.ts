/** `requeue dead-letters`: the commands for dead letters. */
import * as Command from "effect/cli/Command"
import { exportLetters } from "./export.ts"
import { group } from "./group.ts"
import { importLetters } from "./import.ts"
import { list, peek } from "./list.ts"
import { purge } from "./purge.ts"
import { redrive } from "./redrive.ts"

export const deadLetters = Command.make("dead-letters").pipe(
  Command.withDescription(
    "Looks after dead letters: those of --queue, whose policy names their queues, or those of --dlq."
  ),
  Command.withShortDescription("List, group, peek, redrive, purge, export and import dead letters"),
  Command.withSubcommands([list, group, peek, redrive, purge, exportLetters, importLetters])
)
