import type { Work } from "../jobs.ts"

/** Work inside one process: handle all of it, with fixed concurrency and a handler that awaits nothing. */
export interface Memory extends Work {
  readonly concurrency: number
  /** The backlog after the counted messages. Default 0. */
  readonly backlog?: number
}

/** Handle all of it in batches, and ack each message separately, or all of a batch at once. */
export interface Batches extends Work {
  readonly maxBatchSize: number
  readonly ofEach: boolean
}

/** Send and handle with telemetry: none, OpenTelemetry without an SDK, with parts of one, or with spans kept in memory. */
export interface Watched extends Work {
  readonly inFlight: number
  readonly telemetry: "none" | "api" | "metrics" | "traces" | "both" | "memory"
}

/** Handle all of it, with the unchanged code, or without its calls of telemetry. */
export interface Bundled extends Memory {
  readonly isWithout: boolean
}
