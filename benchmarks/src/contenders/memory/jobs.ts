import type { Work } from "../jobs.ts"

/** Work inside one process: handle all of it, so many at a time, with a handler that awaits nothing. */
export interface Memory extends Work {
  readonly concurrency: number
  /** Messages behind those that are counted. Default 0. */
  readonly backlog?: number
}

/** Handle all of it in batches, and ack each message by itself, or all of a batch at once. */
export interface Batches extends Work {
  readonly maxBatchSize: number
  readonly ofEach: boolean
}

/** Send to as many queues in turn. */
export interface Sending extends Work {
  readonly inFlight: number
  readonly queues: number
}

/** Send and handle with telemetry: none, OpenTelemetry without an SDK, with parts of one, or with spans kept in memory. */
export interface Watched extends Work {
  readonly inFlight: number
  readonly telemetry: "none" | "api" | "metrics" | "traces" | "both" | "memory"
}

/** Handle all of it, with the code as it is, or without the places where it calls telemetry. */
export interface Bundled extends Memory {
  readonly isWithout: boolean
}
