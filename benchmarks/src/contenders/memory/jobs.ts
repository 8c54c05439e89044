import type { Work } from "../jobs.ts"

/** Work inside one process: handle all of it, so many at a time, with a handler that awaits nothing. */
export interface Memory extends Work {
  readonly concurrency: number
  /** Messages behind those that are counted. Default 0. */
  readonly backlog?: number
}
