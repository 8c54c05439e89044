/** What workloads are told, whatever they run on. */

/** How much there is to do; the runner tells everybody. */
export interface Work {
  /** Counted messages. */
  readonly messages: number
  /** Messages before those. */
  readonly warmUp: number
}

/** Work on a queue of a broker. */
export interface Place extends Work {
  readonly url: string
  readonly queue: string
}

/** What the handler gets that takes everything, awaits nothing, and has it acknowledged. */
export interface Handling {
  readonly body: "bytes" | "json"
  /** Whether it gets one at a time, or as many as half of what may be in progress. */
  readonly batch: boolean
}

/** Publish, each with the broker's confirmation. */
export interface Publish extends Place {
  readonly inFlight: number
  /** Bytes. */
  readonly size: number
}
