/** What the workloads on SQS are told. */
import type { Handling, Place } from "../jobs.ts"

/** Take everything, and delete it after a handler that awaits nothing; a batch is what came together. */
export interface Consume extends Place, Pick<Handling, "batch"> {
  readonly queueUrl: string
  /** Polls of ten messages at a time. */
  readonly polls: number
}

/** A handler that fails for some, which come again after a while. */
export interface Retry extends Consume {
  /** Milliseconds. */
  readonly delay: number
  /** Of ten messages, how many fail once. */
  readonly failing: number
  /** How long a message that nobody settles is hidden, in milliseconds. */
  readonly visibilityTimeout: number
}
