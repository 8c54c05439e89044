/** Keeps the log short. SQLite's own checkpoints would wait for the disk in the event loop. */
import type { Timers } from "@requeue/core/port"
import type { Log } from "../log.ts"

/** The pages of a log that is long: as in SQLite. */
const limit = 1000

/** The pause after an attempt that a reader or another process has prevented, in milliseconds. */
const pause = 100

/** Returns a function for each commit: it begins a checkpoint if the log is long. */
export const make = (log: Log, timers: Timers.Timers): (() => void) => {
  let isRunning = false
  const end = (isDone: boolean): void => {
    if (isDone) isRunning = false
    else timers.after(pause, () => end(true))
  }
  return () => {
    if (isRunning || !log.has(limit)) return
    isRunning = true
    log.checkpoint(limit).then(end, () => end(false))
  }
}
