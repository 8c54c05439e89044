/** Writes to the disk. One flush runs at a time, and the next one serves all sends that came meanwhile. */
import { BrokerError, Delay, type Timers } from "@requeue/core/port"
import type { Log } from "../log.ts"
import { toBrokerError } from "../toBrokerError.ts"

type Done = (error?: BrokerError.BrokerError) => void

/** Calls back once a send counts as stored. */
export type Flush = (done: Done) => void

interface Batch {
  readonly waiting: Array<Done>
  readonly limit: Timers.Timer
}

/** Returns a function that calls back once everything committed so far is on the disk, or after the timeout. MUST 7. */
export const make = (log: Pick<Log, "flush">, timers: Timers.Timers, timeout: number): Flush => {
  let isRunning = false
  let next: Batch | undefined

  const end = ({ limit, waiting }: Batch, error?: BrokerError.BrokerError): void => {
    timers.cancel(limit)
    for (const done of waiting.splice(0)) done(error)
  }

  const late = (batch: Batch): void => {
    if (next === batch) next = undefined
    const detail = `the disk did not confirm within ${Delay.format(timeout)}; the outcome is unknown`
    end(batch, new BrokerError.BrokerError({ broker: "sqlite", operation: "publish", reason: "Timeout", detail }))
  }

  const begin = (): void => {
    if (isRunning || next === undefined) return
    const batch = next
    next = undefined
    isRunning = true
    const flushed = (error?: BrokerError.BrokerError): void => {
      isRunning = false
      begin()
      end(batch, error)
    }
    log.flush().then(
      () => flushed(),
      (cause: unknown) => flushed(toBrokerError(cause, { operation: "publish" }))
    )
  }

  const batchOf = (): Batch => {
    const batch: Batch = { waiting: [], limit: timers.after(timeout, () => late(batch)) }
    return batch
  }

  return (done) => {
    next ??= batchOf()
    next.waiting.push(done)
    begin()
  }
}

/** How long a power cut may go back without a wait for the disk, in milliseconds. */
const interval = 1000

/** Returns a function that calls back at once, and begins a flush within a second. SQLite's next sync reports a failing disk. */
export const later = (flush: Flush, timers: Timers.Timers): Flush => {
  let isScheduled = false
  const begin = (): void => {
    isScheduled = false
    flush(() => undefined)
  }
  return (done) => {
    if (!isScheduled) timers.after(interval, begin)
    isScheduled = true
    done()
  }
}
