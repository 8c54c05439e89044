/**
 * A running rate limit: what it lets begin, and the credit that it leaves to the broker. Consumers without a limit have none.
 *
 * While the limit holds, the broker keeps the messages: the credit covers the runs that may begin within a second. Few messages
 * wait here, so their leases are few as well.
 */
import type * as RateLimit from "../../policy/RateLimit.ts"
import * as RateLimitState from "../../policy/RateLimitState.ts"
import type { Timer, Timers } from "../../runtime/Timers.ts"
import type { Window } from "./flow.ts"
import type { Run } from "./runHandler.ts"
import type { RunHandler } from "./scheduler.ts"

export interface Limiter {
  /** Number of batches that may be in progress: none while the limit holds. */
  readonly concurrency: () => number
  readonly window: Window
  /** Counts the runs of a handler, and starts each one when the limit allows it. */
  readonly limited: (run: RunHandler) => RunHandler
  /** Sets what is called when more may begin, or arrive. */
  readonly open: (refresh: () => void) => void
  /** Ends what waits for the limit, without a run. */
  readonly stop: () => void
  /** Milliseconds that a run may have to wait. */
  readonly longestWait: number
}

export interface Dependencies {
  readonly limit: RateLimit.RateLimit
  readonly timers: Pick<Timers, "now" | "after" | "cancel">
  /** Number of batches that may be in progress as long as the limit allows it. */
  readonly concurrency: number
  /** Number of messages that may be in flight as long as the limit allows it. */
  readonly window: number
  /** Most messages of one run. */
  readonly perRun: number
}

/** Milliseconds before its time that a message may arrive: a broker needs some of them to deliver it. */
const ahead = 1000

/** A run that waits for the limit: an immediate retry, or a message of a batch whose messages run one by one. */
interface Waiting {
  readonly start: () => void
  readonly interrupt: () => void
}

/** The runs that have begun, as they count now, and when the messages arrive that the broker may deliver now. */
const counting = ({ limit, timers }: Dependencies) => {
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
  const { concurrency, limit, perRun, timers, window } = dependencies
  const waiting = new Set<Waiting>()
  const runs = counting(dependencies)
  let refresh = (): void => {}

  const wake = (): void => {
    for (const each of waiting) {
      if (runs.now().room === 0) break
      waiting.delete(each)
      each.start()
    }
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
    concurrency: () => (waiting.size === 0 && runs.now().room > 0 ? concurrency : 0),
    window: Object.assign(
      (begun: number) => {
        const { room } = runs.soon()
        return room === 0 ? 0 : Math.min(window, begun + room * perRun)
      },
      { widest: window }
    ),
    limited: (run) => (task, done, within) => {
      if (waiting.size === 0 && runs.now().room > 0) return begin(() => run(task, done, within))
      let begun: Run | undefined
      const each: Waiting = {
        start: () => void (begun = begin(() => run(task, done, within))),
        interrupt: () => {
          if (waiting.delete(each)) done(task, { _tag: "Interrupted" })
          else begun?.interrupt()
        }
      }
      waiting.add(each)
      return each
    },
    open: (callback) => void (refresh = callback),
    stop: () => {
      stop()
      for (const each of waiting) each.interrupt()
    },
    longestWait: limit.per
  }
}
