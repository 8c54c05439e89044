/** Ends the leases of processes that were killed, and frees messages that transactions of programs could not free. */
import type { Timers } from "@requeue/core/port"
import type { Statements } from "../statements.ts"
import type { Lane } from "./lane.ts"
import * as Gather from "./gather.ts"
import * as Pace from "./pace.ts"

/** Maximum number of leases in one statement. */
const maxExpired = 1000

interface Expired {
  readonly messages: ReadonlyArray<readonly [queue: string, at: number]>
  /** Milliseconds of the scan. */
  readonly duration: number
}

/** Of a scan that failed. */
const none: Expired = { messages: [], duration: 0 }

interface Dependencies {
  readonly lane: Lane
  readonly statements: Statements
  readonly timers: Timers.Timers
  readonly timeout: number
  readonly wake: (queue: string, from: number) => void
}

/** Returns a function that starts the scans. */
export const make = ({ lane, statements, timeout, timers, wake }: Dependencies): (() => void) => {
  let isStarted = false
  const expire = Gather.make<void, Expired>({
    lane,
    timers,
    timeout,
    run: async (session) => {
      const began = timers.now()
      const filled = await session.query(statements.fill, [])
      const rows = [...filled, ...(await session.query(statements.expire, [maxExpired]))]
      const messages = rows.map(([queue, at]) => [String(queue), Number(at)] as const)
      return [{ messages, duration: timers.now() - began }]
    }
  })
  const next = (pause: number): void => void timers.after(pause, turn)
  const turn = (): void => {
    expire(undefined, 1, { operation: "expire" }, (_, { duration, messages } = none) => {
      for (const [queue, at] of messages) wake(queue, at)
      if (messages.length >= maxExpired) turn()
      else next(Pace.pause(duration))
    })
  }
  return () => {
    if (isStarted) return
    isStarted = true
    turn()
  }
}
