/** How late a case's delays were: recorded while it runs, checked at its end. */
import * as Effect from "effect/Effect"
import * as Check from "../Check.ts"
import * as Control from "../Control.ts"
import type { NotMeasurable } from "../Lateness.ts"

/** The part of a delay's time that is not the delay's fault. */
export interface DelayOptions {
  /** The time from which lateness counts: when the broker had confirmed the message. Default: when the delay was requested. */
  readonly accepted?: number
  /**
   * Exchanges with the broker, one after another, before the delay has ended; it may be late by that many controls. Default 1.
   */
  readonly hops?: number
}

/** The checks of a case's times. All times are in milliseconds since 1970. */
export interface Checks {
  /**
   * Checks that a delay, requested at `from`, did not end before its time; and that at `at` it was late by no more than the
   * broker may be. The first check fails at once. The second runs at the case's end, when the controls of the time in between are
   * known.
   */
  readonly checkDelay: (what: string, delay: number, from: number, at: number, options?: DelayOptions) => void
  /** Checks that something with a delay, from `from`, did not arrive early. Fails at once. */
  readonly checkNotEarly: (what: string, delay: number, from: number, at: number) => void
  /**
   * Checks at the case's end that two values were equal, unless the machine was late between `from` and now. `bound` is in
   * milliseconds: a machine that is late by more than half of it may be the cause. Default: the harness's lateness.
   */
  readonly checkTimely: (what: string, actual: unknown, expected: unknown, from: number, bound?: number) => void
  /** Runs all checks that are left for the case's end. Fails with `CheckFailed` or `NotMeasurable`. */
  readonly checkLateness: Effect.Effect<void, Check.CheckFailed | NotMeasurable>
}

/** `bound` is the lateness of the harness, `slack` that of a delay on this broker, both in milliseconds. */
export const make = (env: {
  readonly bound: number
  readonly control: Control.Service
  readonly now: () => number
  readonly slack: number
}): Checks => {
  const { bound, control, now, slack } = env
  const arrivals: Array<Control.Arrival> = []
  const checkNotEarly: Checks["checkNotEarly"] = (what, delay, from, at) => {
    const took = at - from
    Check.isTrue(`${what}: early, asked for ${delay} ms, came after ${took} ms`, took >= delay - control.precision)
  }
  return {
    checkNotEarly,
    checkDelay: (what, delay, from, at, { accepted = from, hops = 1 } = {}) => {
      checkNotEarly(what, delay, from, at)
      const late = Math.max(0, at - accepted - delay)
      arrivals.push({ what: `${what}, asked for ${delay} ms`, late, bound: slack, from, at, hops })
    },
    checkTimely: (what, actual, expected, from, least = bound) => {
      const difference = Check.difference(what, actual, expected)
      if (difference === undefined) return
      arrivals.push({ what: difference, late: Number.POSITIVE_INFINITY, bound: least, from, at: now() })
    },
    checkLateness: Effect.suspend(() => Control.check(control, arrivals))
  }
}
