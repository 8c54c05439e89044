/**
 * Runs jobs inside transactions: all jobs of one turn of the event loop share one. This is the only place that begins, commits and
 * rolls back.
 *
 * A job is synchronous, so no transaction spans a turn. If another process holds the lock, the jobs wait without blocking the
 * event loop.
 */
import { BrokerError, type Timers } from "@requeue/core/port"
import type { Settings } from "../../SqliteOptions.ts"
import { type Context, isLocked, toBrokerError } from "../toBrokerError.ts"
import type { Connection } from "./connection.ts"
import type { Flush } from "./flushing.ts"

/** Work in a transaction. */
interface Job extends Context {
  /** About how many rows it changes. */
  readonly weight: number
  /** Whether it is confirmed only when it is on the disk. Default: false. */
  readonly isDurable?: boolean | undefined
  /** Whether it runs after the other jobs of its transaction. Default: false. */
  readonly isLast?: boolean | undefined
  /** Runs inside the transaction. It may run again after a rollback. What it throws fails this job only. */
  readonly run: (connection: Connection) => void
  /** Called once, after the commit, or with the error of a job that did not happen. */
  readonly end: (error?: BrokerError.BrokerError) => void
}

/** The transactions of one file. */
export interface Transactions {
  /** Adds a job. Earlier jobs run and end before it, except those that are last. */
  readonly add: (job: Job) => void
  /** Runs what waits, then fails all later jobs. */
  readonly close: () => void
}

/** About the most rows that a transaction changes, which bounds how long it blocks the event loop. */
const maxWeight = 500

/** The longest pause between two attempts to get the lock, in milliseconds. */
const maxPause = 10

interface Waiting {
  readonly job: Job
  /** The monotonic time when it fails unless it gets the lock, in milliseconds. */
  readonly until: number
}

interface Dependencies {
  /** Returns the open file, or why it is not open. `isDurable`: for jobs that are confirmed. */
  readonly connection: (isDurable: boolean) => Connection | BrokerError.BrokerError
  readonly timers: Timers.Timers
  readonly settings: Settings
  readonly soon: (run: () => void) => void
  /** Writes everything committed so far to the disk; `undefined` if the system does that. */
  readonly flush: Flush | undefined
  /** Called after each commit. */
  readonly onCommit: (() => void) | undefined
}

// Long, because its functions share the waiting jobs.
export const make = ({ connection, flush, onCommit, settings, soon, timers }: Dependencies): Transactions => {
  let waiting: Array<Waiting> = []
  let [isScheduled, isOpen] = [false, true]
  /** Attempts in a row that did not get the lock. */
  let attempts = 0

  const schedule = (): void => {
    if (isScheduled || waiting.length === 0) return
    isScheduled = true
    if (attempts === 0) soon(turn)
    else timers.after(Math.min(attempts, maxPause), turn)
  }

  const turn = (): void => {
    isScheduled = false
    work()
    schedule()
  }

  /** Removes and returns the jobs of the next transaction. */
  const take = (): ReadonlyArray<Waiting> => {
    let count = 0
    for (let weight = 0; count < waiting.length && weight < maxWeight; count++) weight += waiting[count]!.job.weight
    const group = waiting.splice(0, count)
    return [...group.filter(({ job }) => !job.isLast), ...group.filter(({ job }) => job.isLast)]
  }

  const fail = ({ job }: Waiting, cause: unknown): void => job.end(toBrokerError(cause, job))

  /** Keeps jobs for the next attempt, except those whose time is over. */
  const postpone = (group: ReadonlyArray<Waiting>, cause: unknown): void => {
    attempts++
    const now = timers.now()
    waiting = [...group, ...waiting]
    const late = waiting.filter(({ until }) => until <= now)
    waiting = waiting.filter(({ until }) => until > now)
    for (const each of late) fail(each, cause)
  }

  const committed = (group: ReadonlyArray<Waiting>): void => {
    if (flush !== undefined && group.some(({ job }) => job.isDurable)) {
      flush((error) => {
        for (const { job } of group) if (job.isDurable) job.end(error)
      })
    }
    for (const { job } of group) if (flush === undefined || !job.isDurable) job.end()
  }

  /** Ends a transaction that SQLite may have ended itself, as it does when the disk is full. */
  const rollBack = ({ db }: Connection): void => {
    try {
      db.exec("ROLLBACK")
    } catch {
      // There was none left.
    }
  }

  const work = (): void => {
    const group = take()
    if (group.length === 0) return
    const current = connection(group.some(({ job }) => job.isDurable))
    if (current instanceof BrokerError.BrokerError) return postpone(group, current)
    try {
      current.db.exec("BEGIN IMMEDIATE")
    } catch (cause) {
      if (isLocked(cause)) return postpone(group, cause)
      for (const each of group) fail(each, cause)
      return
    }
    attempts = 0
    current.declared.clear()
    for (const each of group) {
      try {
        each.job.run(current)
      } catch (cause) {
        rollBack(current)
        waiting = [...group.filter((other) => other !== each), ...waiting]
        return fail(each, cause)
      }
    }
    try {
      current.db.exec("COMMIT")
    } catch (cause) {
      rollBack(current)
      for (const each of group) fail(each, cause)
      return
    }
    onCommit?.()
    committed(group)
  }

  const closed = ({ operation, queue }: Job): BrokerError.BrokerError =>
    new BrokerError.BrokerError({
      broker: "sqlite",
      operation,
      queue,
      reason: "ConnectionFailed",
      detail: "the broker was closed"
    })

  return {
    add: (job) => {
      if (!isOpen) return job.end(closed(job))
      waiting.push({ job, until: timers.now() + settings.timeout })
      schedule()
    },
    close: () => {
      isOpen = false
      while (attempts === 0 && waiting.length > 0) work()
      for (const { job } of waiting.splice(0)) job.end(closed(job))
    }
  }
}
