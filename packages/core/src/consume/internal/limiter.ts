/**
 * A running rate limit: how many runs may begin, and how many messages may be in flight.
 *
 * The broker keeps the messages that exceed the limit: the credit covers only the runs that may begin within a second, or
 * when a batch is due. So few messages wait here with a lease. Runs do not wait: the scheduler begins a run only if the limit
 * has room, and skips an immediate retry without room.
 */
import type * as RateLimit from "../../policy/RateLimit.ts"
import * as RateLimitState from "../../policy/RateLimitState.ts"
import { Alarm } from "../../runtime/Alarm.ts"
import type { Timers } from "../../runtime/Timers.ts"
import type { Window } from "./flow.ts"
import type { Run } from "./runHandler.ts"
import type { RunHandler } from "./runs.ts"

export interface Limiter {
  /** Returns how many runs may begin now, without the reserved ones. */
  readonly room: () => number
  /** Reserves room for the first run of each message of a batch, so immediate retries do not use it. */
  readonly reserve: (runs: number) => void
  readonly window: Window
  /** Counts the runs of a handler. */
  readonly counted: (run: RunHandler) => RunHandler
  /** Sets the function to call when more runs may begin or more messages may arrive. */
  readonly open: (refresh: () => void) => void
  readonly stop: () => void
  /** The longest that a message may have to wait, in milliseconds. */
  readonly longestWait: number
}

export interface Dependencies {
  readonly limit: RateLimit.RateLimit
  readonly timers: Pick<Timers, "now" | "after" | "cancel">
  /** How many messages may be in flight if the limit allows it. */
  readonly window: number
  /** The most messages of one run. */
  readonly perRun: number
  /** How long a batch waits for further messages, in milliseconds. */
  readonly maxBatchTimeout: number
}

/** The time that a broker may need to deliver a message, in milliseconds. */
const delivering = 1000

/** Counts the runs that have begun: as of now, and as of the time when messages arrive that the broker may deliver now. */
const counting = ({ limit, maxBatchTimeout, timers }: Dependencies) => {
  // A partial batch is due when the limit has room again.
  const ahead = delivering + maxBatchTimeout
  let state = RateLimitState.initial
  let soon = RateLimitState.initial
  /** The states without the last run, until its handler has begun. */
  let before: { readonly state: RateLimitState.State; readonly soon: RateLimitState.State } | undefined
  const count = (others: NonNullable<typeof before>): void => {
    const now = timers.now()
    state = RateLimitState.begin(others.state, now)
    soon = RateLimitState.begin(others.soon, now)
  }
  /** Counts the last run again, as of now: its handler began at some time since it was counted. */
  const begun = (): void => {
    if (before !== undefined) count(before)
    before = undefined
  }
  return {
    now: (): RateLimitState.Decision => {
      const now = timers.now()
      state = RateLimitState.at(limit, state, now)
      return RateLimitState.decide(limit, state, now)
    },
    soon: (): RateLimitState.Decision => {
      const then = timers.now() + ahead
      soon = RateLimitState.at(limit, soon, then)
      return RateLimitState.decide(limit, soon, then)
    },
    /** Counts a run that is about to begin. Call `begun` when its handler has begun. */
    begin: (): void => {
      begun()
      before = { state, soon }
      count(before)
    },
    begun
  }
}

export const make = (dependencies: Dependencies): Limiter => {
  const { limit, perRun, timers, window } = dependencies
  const runs = counting(dependencies)
  let reserved = 0
  let refresh = (): void => {}

  const wake = (): void => {
    refresh()
    arm()
  }
  const alarm = new Alarm(timers, wake)

  /** Sets the timer for the time when the next run may begin, or more messages may arrive. */
  const arm = (): void => {
    const [now, soon] = [runs.now(), runs.soon()]
    if (now.room === 0) alarm.within(now.wait)
    if (soon.room * perRun < window) alarm.within(soon.wait)
  }

  const begin = (run: () => Run): Run => {
    runs.begin()
    // Lower the credit before this message is settled: otherwise the broker delivers another one at once.
    if (runs.soon().room === 0) refresh()
    const running = run()
    // If the handler has failed already, its immediate retry has called this.
    runs.begun()
    arm()
    return running
  }

  return {
    room: () => runs.now().room - reserved,
    reserve: (runs) => void (reserved += runs),
    window: Object.assign(
      (begun: number) => {
        const { room } = runs.soon()
        return room === 0 ? 0 : Math.min(window, begun + room * perRun)
      },
      { widest: window }
    ),
    counted: (run) => (task, done, within) => {
      if (task.reruns === 0 && reserved > 0) reserved--
      return begin(() => run(task, done, within))
    },
    open: (callback) => void (refresh = callback),
    stop: () => alarm.stop(),
    longestWait: limit.per
  }
}
