/**
 * A running rate limit: what it lets begin, and the credit that it leaves to the broker. Consumers without a limit have none.
 *
 * While the limit holds, the broker keeps the messages: the credit covers the runs that may begin within a second. Few messages
 * wait here, so their leases are few as well.
 */
import * as RateLimit from "../../policy/RateLimit.ts"
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
  /** Calls back when more may begin, or arrive. */
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

export const make = ({ concurrency, limit, perRun, timers, window }: Dependencies): Limiter => {
  const waiting = new Set<Waiting>()
  let state = RateLimit.initial
  /** The same, as it is when the messages that are given now arrive. */
  let soon = RateLimit.initial
  let refresh = (): void => {}
  let timer: Timer | undefined
  let wakesAt = Number.POSITIVE_INFINITY
  let isStopped = false

  const decide = (): RateLimit.Decision => {
    const now = timers.now()
    state = RateLimit.at(limit, state, now)
    return RateLimit.decide(limit, state, now)
  }
  const decideSoon = (): RateLimit.Decision => {
    const then = timers.now() + ahead
    soon = RateLimit.at(limit, soon, then)
    return RateLimit.decide(limit, soon, then)
  }

  /** Wakes when the next run may begin, or further messages may come. */
  const arm = (): void => {
    const [now, later] = [decide(), decideSoon()]
    const wait = Math.min(
      now.room === 0 ? now.wait : Number.POSITIVE_INFINITY,
      later.room * perRun < window ? later.wait : Number.POSITIVE_INFINITY
    )
    const at = timers.now() + wait
    if (at >= wakesAt || isStopped) return
    timers.cancel(timer)
    wakesAt = at
    timer = timers.after(wait, () => {
      wakesAt = Number.POSITIVE_INFINITY
      wake()
    })
  }

  const wake = (): void => {
    for (const each of waiting) {
      if (decide().room === 0) break
      waiting.delete(each)
      each.start()
    }
    refresh()
    arm()
  }

  const begin = (run: () => Run): Run => {
    const before = { state, soon }
    const now = timers.now()
    state = RateLimit.begin(state, now)
    soon = RateLimit.begin(soon, now)
    const reserved = state
    // Before this message is settled: the broker would deliver another one in its place.
    if (decideSoon().room === 0) refresh()
    const begun = run()
    // The handler may have begun as late as now. Where another run has begun since, it was before that.
    if (state === reserved) {
      const latest = timers.now()
      state = RateLimit.begin(before.state, latest)
      soon = RateLimit.begin(before.soon, latest)
    }
    arm()
    return begun
  }

  return {
    concurrency: () => (waiting.size === 0 && decide().room > 0 ? concurrency : 0),
    window: Object.assign(
      (begun: number) => {
        const { room } = decideSoon()
        return room === 0 ? 0 : Math.min(window, begun + room * perRun)
      },
      { widest: window }
    ),
    limited: (run) => (task, done, within) => {
      if (waiting.size === 0 && decide().room > 0) return begin(() => run(task, done, within))
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
      isStopped = true
      timers.cancel(timer)
      for (const each of waiting) each.interrupt()
    },
    longestWait: limit.per
  }
}
