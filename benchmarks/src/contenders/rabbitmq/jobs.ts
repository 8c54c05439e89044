/** What the workloads on RabbitMQ are told. */
import type { Handling, Place } from "../jobs.ts"

export type { Publish } from "../jobs.ts"

interface Window extends Place {
  /** Messages that may be unacknowledged. */
  readonly prefetch: number
}

/** Take everything. */
export interface Consume extends Window, Handling {}

/** A handler that wants some once more, after a while; with several delays, each in its turn. */
export interface Retry extends Window {
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
  readonly perSecond: number
  readonly delay: number
  readonly failing: number
}
