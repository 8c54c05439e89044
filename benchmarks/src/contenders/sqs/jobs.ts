/** The input of the workloads on SQS. */
import type { Handling, Place } from "../jobs.ts"

/** Take everything, and delete it after a handler that awaits nothing; a batch is what arrived together. */
export interface Consume extends Place, Pick<Handling, "batch"> {
  readonly queueUrl: string
  /** Polls of ten messages at a time. */
  readonly polls: number
}

/** A handler that fails for some, which are redelivered after a while. */
export interface Retry extends Consume {
  /** Milliseconds. */
  readonly delay: number
  /** Of ten messages, how many fail once. */
  readonly failing: number
  /** The visibility timeout, in milliseconds. */
  readonly visibilityTimeout: number
}
