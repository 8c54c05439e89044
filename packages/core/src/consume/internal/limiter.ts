/**
 * A running rate limit: what it lets begin, and the credit that it leaves to the broker. Consumers without a limit have none.
 *
 * While the limit holds, the broker keeps the messages: the credit covers the runs that may begin within a second, or when a
 * batch is due. Few messages wait here, so their leases are few as well. No run waits: the scheduler begins one that has room, and
 * an immediate retry without room does not take place.
 */
import type * as RateLimit from "../../policy/RateLimit.ts"
import * as RateLimitState from "../../policy/RateLimitState.ts"
import type { Timer, Timers } from "../../runtime/Timers.ts"
import type { Window } from "./flow.ts"
import type { Run } from "./runHandler.ts"
import type { RunHandler } from "./scheduler.ts"

export interface Limiter {
  /** Runs that may begin now, beside those that are reserved. The scheduler begins no others. */
  readonly room: () => number
  /** Reserves the first runs of messages that begin one after another, so immediate retries among them take no room of theirs. */
  readonly reserve: (runs: number) => void
  readonly window: Window
  /** Counts the runs of a handler. */
  readonly counted: (run: RunHandler) => RunHandler
  /** Sets what is called when more may begin, or arrive. */
  readonly open: (refresh: () => void) => void
  readonly stop: () => void
  /** Milliseconds that a message may have to wait. */
  readonly longestWait: number
}

export interface Dependencies {
  readonly limit: RateLimit.RateLimit
  readonly timers: Pick<Timers, "now" | "after" | "cancel">
  /** Number of messages that may be in flight as long as the limit allows it. */
  readonly window: number
  /** Most messages of one run. */
  readonly perRun: number
  /** Milliseconds that a batch waits for further messages. */
  readonly maxBatchTimeout: number
}

/** Milliseconds that a broker may need to deliver a message. */
const delivering = 1000

/** The runs that have begun, as they count now, and when the messages arrive that the broker may deliver now. */
const counting = ({ limit, maxBatchTimeout, timers }: Dependencies) => {
  // A batch that is not full is due when the limit opens.
  const ahead = delivering + maxBatchTimeout
  let state = RateLimitState.initial
  let soon = RateLimitState.initial
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
    /** Counts a run that is about to begin. The answer is to be called when its handler has begun. */
    begin: (): (() => void) => {
      const before = { state, soon }
      const count = (): void => {
        const now = timers.now()
        state = RateLimitState.begin(before.state, now)
        soon = RateLimitState.begin(before.soon, now)
      }
      count()
      const counted = state
      // Its handler has begun by now, and not before it was counted. Where another run has begun since, it was before that.
      return () => {
        if (state === counted) count()
      }
    }
  }
}

/** One timer, which wakes at the earliest time that was asked for. */
const alarm = (timers: Dependencies["timers"], wake: () => void) => {
  let timer: Timer | undefined
  let wakesAt = Number.POSITIVE_INFINITY
  let isStopped = false
  return {
    within: (wait: number): void => {
      const at = timers.now() + wait
      if (at >= wakesAt || isStopped) return
      timers.cancel(timer)
      wakesAt = at
      timer = timers.after(wait, () => {
        wakesAt = Number.POSITIVE_INFINITY
        wake()
      })
    },
    stop: (): void => {
      isStopped = true
      timers.cancel(timer)
    }
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
  const { stop, within: wakeWithin } = alarm(timers, wake)

  /** Wakes when the next run may begin, or further messages may come. */
  const arm = (): void => {
    const [now, soon] = [runs.now(), runs.soon()]
    if (now.room === 0) wakeWithin(now.wait)
    if (soon.room * perRun < window) wakeWithin(soon.wait)
  }

  const begin = (run: () => Run): Run => {
    const begun = runs.begin()
    // Before this message is settled: the broker would deliver another one in its place.
    if (runs.soon().room === 0) refresh()
    const running = run()
    begun()
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
    stop,
    longestWait: limit.per
  }
}
