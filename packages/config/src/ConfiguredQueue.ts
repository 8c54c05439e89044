/** A queue of a config file: a definition to send to and consume from, with what its consumers are started with. */
import type * as ConsumerOptions from "@requeue/core/ConsumerOptions"
import type { QueueDefinition } from "@requeue/core/QueueDefinition"
import type { Problem } from "@requeue/core/StrictSchema"

export interface ConfiguredQueue<in out A = any> extends QueueDefinition<A> {
  /** The name of its broker in the file. */
  readonly broker: string
  readonly options: ConsumerOptions.Options
  /** Where its retry policy stands in the file. */
  readonly retryPath: Problem["path"]
}
