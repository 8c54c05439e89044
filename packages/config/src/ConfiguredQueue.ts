/** A queue of a config file: a definition to send to and consume from, with what its consumers are started with. */
import type { ConsumerOptions, QueueDefinition } from "@requeue/core"
import type { StrictSchema } from "@requeue/core/schema"

export interface ConfiguredQueue<in out A = any> extends QueueDefinition.QueueDefinition<A> {
  /** The name of its broker in the file. */
  readonly broker: string
  readonly options: ConsumerOptions.Options
  /** Where its retry policy stands in the file. */
  readonly retryPath: StrictSchema.Problem["path"]
}
