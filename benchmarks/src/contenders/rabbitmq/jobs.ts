/** What the workloads on RabbitMQ are told. */
import type { Handling, Place, Publish } from "../jobs.ts"

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
  /** How many come in a second. Default: all are there already. */
  readonly perSecond?: number
  /** By hand: whether the server moves what has waited at least once, like Requeue's queues, or at most once. */
  readonly atLeastOnce?: boolean
  /** By hand: whether each delay has a wait queue of its own. Default: all wait in one, which keeps their order. */
  readonly isEach?: boolean
  /** Of Requeue: where delays are kept. */
  readonly topology?: "auto" | "ladder" | "levels"
  /** A queue with as many messages as `rehearsed`, on which the same is done before, uncounted; 0 for a cold process. */
  readonly rehearsal: string
  readonly rehearsed: number
}

/** Publish to as many queues in turn. */
export interface PublishToMany extends Publish {
  readonly queues: number
}

/** Send and handle so many a second, for so long. */
export interface Soak extends Place {
  readonly perSecond: number
  readonly delay: number
  readonly failing: number
}
