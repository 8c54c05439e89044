/** What the workloads on SQS are told. */

interface Place {
  readonly url: string
  readonly queue: string
  readonly queueUrl: string
  readonly messages: number
  readonly warmUp: number
  /** Polls of ten messages at a time. */
  readonly polls: number
}

/** Take everything, and delete it after a handler that awaits nothing. */
export interface Consume extends Place {
  /** Whether the handler gets what came together, or one at a time. */
  readonly batch: boolean
}

/** A handler that fails for some, which come again after a while. */
export interface Retry extends Place {
  readonly batch: boolean
  /** Milliseconds. */
  readonly delay: number
  /** Of ten messages, how many fail once. */
  readonly failing: number
  /** How long a message that nobody settles is hidden, in milliseconds. */
  readonly visibilityTimeout: number
}
