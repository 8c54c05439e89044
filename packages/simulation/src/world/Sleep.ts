/** Clocks on which some sleeps take longer. Regular checks that find nothing are rare: a long world would consist of little else. */
import type * as Clock from "effect/Clock"

/** The same clock with another `sleep`. */
export const on = (clock: Clock.Clock, sleep: Clock.Clock["sleep"]): Clock.Clock => ({
  currentTimeMillis: clock.currentTimeMillis,
  currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
  currentTimeNanos: clock.currentTimeNanos,
  currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
  monotonicTimeNanos: clock.monotonicTimeNanos,
  monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
  sleep
})
