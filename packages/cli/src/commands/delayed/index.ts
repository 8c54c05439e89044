/** `requeue delayed`: the commands for delayed messages. */
import * as Command from "effect/cli/Command"
import { count, list } from "./list.ts"
import { purge } from "./purge.ts"

export const delayed = Command.make("delayed").pipe(
  Command.withDescription(
    "Operates on delayed messages, such as retries in backoff, if the broker can show them: RabbitMQ."
  ),
  Command.withShortDescription("List, count and remove messages in backoff"),
  Command.withSubcommands([list, count, purge])
)
