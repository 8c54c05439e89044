/** Keeps the log short. SQLite's own checkpoints would wait for the disk in the event loop. */
import type { Timers } from "@requeue/core/port"
import type { Log } from "../log.ts"

/** The pages of a log that is long: as in SQLite. */
const limit = 1000

/** Pauses after an attempt that a reader or another process has prevented, and after one that failed, in milliseconds. */
const pauses = { prevented: 100, failed: 1000 }

/** Returns a function for each commit: it begins a checkpoint if the log is long. */
export const make = (log: Log, timers: Timers.Timers): (() => void) => {
  let isRunning = false
  const end = (pause: number): void => {
    if (pause > 0) return void timers.after(pause, () => end(0))
    isRunning = false
  }
  return () => {
    if (isRunning || !log.has(limit)) return
    isRunning = true
    log.checkpoint(limit).then(
      (isDone) => end(isDone ? 0 : pauses.prevented),
      () => end(pauses.failed)
    )
  }
}
