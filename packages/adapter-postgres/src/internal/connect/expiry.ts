/** Ends the leases of processes that were killed. */
import type { Timers } from "@requeue/core/port"
import type { Statements } from "../statements.ts"
import type { Lane } from "./lane.ts"
import * as Gather from "./gather.ts"
import * as Pace from "./pace.ts"

/** The most leases of one statement. */
const maxExpired = 1000

interface Dependencies {
  readonly lane: Lane
  readonly statements: Statements
  readonly timers: Timers.Timers
  readonly timeout: number
  readonly wake: (queue: string, from: number) => void
}

/** Returns what starts it. */
export const make = ({ lane, statements, timeout, timers, wake }: Dependencies): (() => void) => {
  let isStarted = false
  const expire = Gather.make<void, ReadonlyArray<readonly [queue: string, at: number]>>({
    lane,
    timers,
    timeout,
    run: async (session) => {
      const rows = await session.query(statements.expire, [maxExpired])
      return [rows.map(([queue, at]) => [String(queue), Number(at)] as const)]
    }
  })
  const next = (pause: number): void => void timers.after(pause, turn)
  const turn = (): void => {
    const began = timers.now()
    expire(undefined, 1, { operation: "expire" }, (_, expired = []) => {
      for (const [queue, at] of expired) wake(queue, at)
      if (expired.length === maxExpired) turn()
      else next(Pace.pause(timers.now() - began))
    })
  }
  return () => {
    if (isStarted) return
    isStarted = true
    turn()
  }
}
