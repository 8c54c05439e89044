/** The input of workloads, on every broker. */

/** The amount of work, from the runner. */
export interface Work {
  /** Counted messages. */
  readonly messages: number
  /** Messages of the warm-up. */
  readonly warmUp: number
}

/** Work on a queue of a broker. */
export interface Place extends Work {
  readonly url: string
  readonly queue: string
}

/** What the handler receives; it awaits nothing, and everything is acknowledged. */
export interface Handling {
  readonly body: "bytes" | "json"
  /** Whether it receives one at a time, or batches of half of the messages in progress. */
  readonly batch: boolean
}

/** Publish, each with the broker's confirmation. */
export interface Publish extends Place {
  readonly inFlight: number
  /** Bytes. */
  readonly size: number
}

/** Send, or send and handle, this many messages at a time. */
export interface Scaling extends Publish {
  readonly queues: number
  /** Headers of a message. */
  readonly headers: number
}
