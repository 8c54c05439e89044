/**
 * A connection that does one thing after the other. Sends, settlements, claims and inspections have a lane each, so they do not wait
 * for each other.
 */
import { BrokerError, type Timers } from "@requeue/core/port"
import type { Session } from "../client.ts"

/** Gathers work for a lane. */
export interface Source {
  /** When its first work expires, in monotonic milliseconds; `undefined`: it has no work. */
  readonly until: () => number | undefined
  /** Does work on a connection. It does not reject. */
  readonly run: (session: Session) => Promise<void>
  /** Fails the work that has waited until a time. */
  readonly expire: (now: number, error: BrokerError.BrokerError) => void
}

export interface Lane {
  /** Runs sources that have work, in turn. */
  readonly schedule: (source: Source) => void
  /** Continues with a new connection. */
  readonly resume: () => void
  /** Fails all work, now and later. */
  readonly close: () => void
}

interface Dependencies {
  readonly session: () => Session | undefined
  /** Why there is no connection. */
  readonly reason: () => BrokerError.BrokerError
  /** Called when the lane needs a connection for the first time. */
  readonly onNeed: () => void
  readonly timers: Timers.Timers
  readonly soon: (run: () => void) => void
}

const closed = new BrokerError.BrokerError({
  broker: "postgres",
  operation: "close",
  reason: "ConnectionFailed",
  detail: "the broker was closed"
})

export const make = ({ onNeed, reason, session, soon, timers }: Dependencies): Lane => {
  const waiting = new Set<Source>()
  let [isScheduled, isBusy, isOpen] = [false, false, true]
  let timer: Timers.Timer | undefined

  const expire = (now: number, error: BrokerError.BrokerError): void => {
    for (const source of waiting) {
      source.expire(now, error)
      if (source.until() === undefined) waiting.delete(source)
    }
  }

  /** Waits for a connection. */
  const wait = (): void => {
    onNeed()
    timers.cancel(timer)
    const first = Math.min(...[...waiting].map((source) => source.until() ?? Number.POSITIVE_INFINITY))
    timer = timers.after(Math.max(0, first - timers.now()), () => {
      expire(timers.now(), reason())
      pump()
    })
  }

  const pump = (): void => {
    isScheduled = false
    const [source] = waiting
    if (isBusy || source === undefined) return
    const current = session()
    if (current === undefined) return wait()
    timers.cancel(timer)
    // It goes to the end, so every source gets its turn.
    waiting.delete(source)
    isBusy = true
    void source.run(current).then(() => {
      isBusy = false
      if (source.until() !== undefined) waiting.add(source)
      if (!isOpen) expire(Number.POSITIVE_INFINITY, closed)
      pump()
    })
  }

  return {
    schedule: (source) => {
      if (!isOpen) return source.expire(Number.POSITIVE_INFINITY, closed)
      waiting.add(source)
      if (isScheduled || isBusy) return
      isScheduled = true
      soon(pump)
    },
    resume: pump,
    close: () => {
      isOpen = false
      timers.cancel(timer)
      if (!isBusy) expire(Number.POSITIVE_INFINITY, closed)
    }
  }
}
