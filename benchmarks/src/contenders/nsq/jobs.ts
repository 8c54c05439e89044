/** What the workloads on NSQ are told. */

interface Place {
  readonly url: string
  /** Topic and channel, with a slash between them. */
  readonly queue: string
  readonly messages: number
}

/** Take everything, and finish it after a handler that awaits nothing. */
export interface Consume extends Place {
  /** Messages that may be unfinished. */
  readonly maxInFlight: number
  /** What the handler gets. */
  readonly body: "bytes" | "json"
  /** Whether it gets one at a time, or as many as half of `maxInFlight`. */
  readonly batch: boolean
}

/** Publish, and wait for nsqd's answer. */
export interface Publish extends Place {
  readonly inFlight: number
  readonly size: number
  readonly warmUp: number
}

/** A handler that fails once for every message, which comes again after a while. */
export interface Retry extends Place {
  readonly maxInFlight: number
  /** Milliseconds. */
  readonly delay: number
}
