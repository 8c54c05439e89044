/** `requeue delayed`: the commands for messages that wait for their delay. */
import * as Command from "effect/cli/Command"
import { count, list } from "./list.ts"
import { purge } from "./purge.ts"

export const delayed = Command.make("delayed").pipe(
  Command.withDescription(
    "Looks after messages that wait for their delay, such as retries in backoff, where the broker can show them: RabbitMQ."
  ),
  Command.withShortDescription("List, count and remove messages in backoff"),
  Command.withSubcommands([list, count, purge])
)
