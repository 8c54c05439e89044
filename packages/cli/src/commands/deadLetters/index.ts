/** `requeue dead-letters`: the commands for dead letters. */
import * as Command from "effect/cli/Command"
import { group } from "./group.ts"
import { list, peek } from "./list.ts"
import { purge } from "./purge.ts"
import { redrive } from "./redrive.ts"

export const deadLetters = Command.make("dead-letters").pipe(
  Command.withDescription(
    "Looks after dead letters: those of --queue, whose policy names their queues, or those of --dlq."
  ),
  Command.withShortDescription("List, group, peek, redrive and purge dead letters"),
  Command.withSubcommands([list, group, peek, redrive, purge])
)
