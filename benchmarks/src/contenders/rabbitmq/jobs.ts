/** What the workloads on RabbitMQ are told. */

interface Place {
  readonly url: string
  readonly queue: string
  readonly messages: number
}

/** Take everything, and acknowledge it after a handler that awaits nothing. */
export interface Consume extends Place {
  /** Messages that may be unacknowledged. */
  readonly prefetch: number
  /** What the handler gets. */
  readonly body: "bytes" | "json"
  /** Whether it gets one at a time, or as many as half of the prefetch. */
  readonly batch: boolean
}

/** Publish with confirmation. */
export interface Publish extends Place {
  readonly inFlight: number
  readonly size: number
  readonly warmUp: number
}

/** A handler that wants some once more, after a while; with several delays, each in its turn. */
export interface Retry extends Place {
  readonly prefetch: number
  /** Milliseconds, with commas between them. */
  readonly delays: string
  /** Of a hundred messages, how many come again. */
  readonly failing: number
  /** By hand: whether the server moves what has waited at least once, like Requeue's queues, or at most once. */
  readonly atLeastOnce?: boolean
  /** A queue with as many messages as `rehearsed`, on which the same is done before, uncounted. */
  readonly rehearsal: string
  readonly rehearsed: number
}

/** Send and handle so many a second, for so long. */
export interface Soak extends Place {
  readonly warmUp: number
  readonly perSecond: number
  readonly delay: number
  readonly failing: number
}
