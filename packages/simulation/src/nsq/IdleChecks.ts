/**
 * Idle checks: regular checks of consumers that find nothing are left out, or a world would consist of little else.
 *
 * | check | what it may find |
 * | --- | --- |
 * | turns of the credit among connections, every 50 ms at most | a message that waits for a connection without credit |
 * | requests for the state of channels, every 2 s | a channel that an operator has paused; no operator of a world does that |
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Machine } from "../world/Machine.ts"
import type { World } from "../world/World.ts"

/** Milliseconds between two turns, at most, and between two requests. */
const interval = { turns: 50, requests: 2000 }

/** Milliseconds that these pauses take while no message waits. */
const longest = { turns: 10_000, requests: 60_000 }

/** The checks of a world. */
export interface IdleChecks {
  /** A clock on which checks pause while nothing waits, until something does. */
  readonly clockOf: (machine: Machine, clock: Clock.Clock, isIdle: () => boolean) => Clock.Clock
  /** A message may wait now. */
  readonly wakeAll: () => void
}

/** No check pauses. */
export const make = (world: World): IdleChecks => {
  const sleepers = new Set<() => void>()

  const woken = ({ perform }: Machine): Effect.Effect<void> =>
    Effect.callback((resume) => {
      const wake = (): void => {
        sleepers.delete(wake)
        world.after(0, () => perform(() => resume(Effect.void)))
      }
      sleepers.add(wake)
      return Effect.sync(() => void sleepers.delete(wake))
    })

  return {
    clockOf: (machine, clock, isIdle) => ({
      currentTimeMillis: clock.currentTimeMillis,
      currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
      currentTimeNanos: clock.currentTimeNanos,
      currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
      monotonicTimeNanos: clock.monotonicTimeNanos,
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
      sleep: (duration) =>
        Effect.suspend(() => {
          const millis = Duration.toMillis(duration)
          if (millis === interval.requests) return clock.sleep(Duration.millis(longest.requests))
          if (millis > interval.turns || !isIdle()) return clock.sleep(duration)
          return Effect.raceFirst(clock.sleep(Duration.millis(longest.turns)), woken(machine))
        })
    }),
    wakeAll: () => {
      for (const wake of sleepers) wake()
    }
  }
}
