/** What the workloads on NSQ are told. Their queue is a topic and a channel, with a slash between them. */
import type { Handling, Place } from "../jobs.ts"

export type { Publish } from "../jobs.ts"

interface Window extends Place {
  /** Messages that may be unfinished. */
  readonly maxInFlight: number
}

/** Take everything. */
export interface Consume extends Window, Handling {}

/** A handler that fails once for every message, which comes again after a while. */
export interface Retry extends Window {
  /** Milliseconds. */
  readonly delay: number
}
