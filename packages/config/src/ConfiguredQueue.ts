/** The queues of a config file. */
import type { QueueDefinition } from "@requeue/core"
import type { ConsumerOptions } from "@requeue/core/port"
import type * as StrictSchema from "./StrictSchema.ts"

/** A queue of a config file: a definition to send to and to consume from, with the options of its consumers. */
// Any, because the file does not say what type the bodies have.
export interface ConfiguredQueue<out A = any, in I = A> extends QueueDefinition.QueueDefinition<A, I> {
  /** The name of the queue's broker in the file. */
  readonly broker: string
  /** The options of the queue's consumers. They apply to options that a call of `consume` leaves out. */
  readonly options: ConsumerOptions.Options
  /** The path of the queue's retry policy in the file. */
  readonly retryPath: StrictSchema.Problem["path"]
}
