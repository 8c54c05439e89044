/** The input of the workloads on RabbitMQ. */
import type { Handling, Place, Publish } from "../jobs.ts"

export type { Publish } from "../jobs.ts"

interface Window extends Place {
  /** The maximum number of unacknowledged messages. */
  readonly prefetch: number
}

/** Take everything. */
export interface Consume extends Window, Handling {}

/** A handler that retries some messages once, after a while; several delays are used in rotation. */
export interface Retry extends Window {
  /** Milliseconds, with commas between them. */
  readonly delays: string
  /** How many of a hundred messages are redelivered. */
  readonly failing: number
  /** Messages per second. Default: all are there already. */
  readonly perSecond?: number
  /** By hand: whether the server moves delayed messages at least once, like Requeue's queues, or at most once. */
  readonly atLeastOnce?: boolean
  /** By hand: whether each delay has a separate wait queue. Default: all wait in one, which keeps their order. */
  readonly isEach?: boolean
  /** Of Requeue: where delays are kept. */
  readonly topology?: "auto" | "ladder" | "levels"
  /** A queue with `rehearsed` messages, on which the same is done first, uncounted; 0 for a cold process. */
  readonly rehearsal: string
  readonly rehearsed: number
}

/** Publish to this many queues in rotation. */
export interface PublishToMany extends Publish {
  readonly queues: number
}

/** Send and handle at this rate, for this long. */
export interface Soak extends Place {
  readonly perSecond: number
  readonly delay: number
  readonly failing: number
}
