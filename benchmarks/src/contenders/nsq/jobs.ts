/** The input of the workloads on NSQ. Their queue is a topic and a channel, with a slash between them. */
import type { Handling, Place } from "../jobs.ts"

export type { Publish } from "../jobs.ts"

interface Window extends Place {
  /** The maximum number of messages in flight. */
  readonly maxInFlight: number
}

/** Take everything. */
export interface Consume extends Window, Handling {}

/** A handler that fails once for every message, which is redelivered after a while. */
export interface Retry extends Window {
  /** Milliseconds. */
  readonly delay: number
}
