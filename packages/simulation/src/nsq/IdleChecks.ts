/**
 * Idle checks: regular checks of processes that find nothing are left out, or a world would consist of little else.
 *
 * | check | what it may find |
 * | --- | --- |
 * | turns of the credit among connections, every 50 ms at most | a message that waits for a connection without credit |
 * | requests for the state of channels, every 2 s | a channel that an operator has paused; no operator of a world does that |
 * | requests to nsqlookupd, every 12 to 18 s | an nsqd or a topic that is new or gone, or that a lost answer has hidden |
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Machine } from "../world/Machine.ts"
import * as Sleep from "../world/Sleep.ts"
import type { World } from "../world/World.ts"

/** The usual pauses, in milliseconds. */
const usual = { turns: 50, requests: 2000, lookups: [12_000, 18_000] } as const

/** Milliseconds of these pauses while a check can find nothing. */
const longest = { turns: 10_000, requests: 600_000, lookups: 300_000 }

/** Milliseconds after a change, or after the last fault, in which processes ask nsqlookupd as often as usual: it is late. */
const news = 60_000

/** The checks of a world. */
export interface IdleChecks {
  /** A program on a clock on which checks pause while they can find nothing. `isIdle`: no message waits. */
  readonly during: <A, E, R>(
    machine: Machine,
    isIdle: () => boolean,
    program: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** A message may wait now. */
  readonly wakeAll: () => void
  /** nsqlookupd may have other answers from now on. */
  readonly changed: () => void
}

/** Things that sleepers wait for. */
const makeSignal = ({ after }: Pick<World, "after">) => {
  const sleepers = new Set<() => void>()
  return {
    wakeAll: (): void => {
      for (const wake of sleepers) wake()
    },
    next: ({ perform }: Machine): Effect.Effect<void> =>
      Effect.callback((resume) => {
        const wake = (): void => {
          sleepers.delete(wake)
          after(0, () => perform(() => resume(Effect.void)))
        }
        sleepers.add(wake)
        return Effect.sync(() => void sleepers.delete(wake))
      })
  }
}

/** No check pauses. */
export const make = (world: World): IdleChecks => {
  const waiting = makeSignal(world)
  const changes = makeSignal(world)
  let changedAt = world.scenario.calmAt

  const sleeping = (machine: Machine, clock: Clock.Clock, isIdle: () => boolean): Clock.Clock["sleep"] => {
    const forMillis = (millis: number): Effect.Effect<void> => clock.sleep(Duration.millis(millis))
    /** Until the first usual time after a change. */
    const quietly = (millis: number): Effect.Effect<void> => {
      const since = world.now()
      const rest = Effect.suspend(() => forMillis(millis - ((world.now() - since) % millis)))
      return Effect.andThen(Effect.raceFirst(forMillis(longest.lookups), changes.next(machine)), rest)
    }
    return (duration) =>
      Effect.suspend(() => {
        const millis = Duration.toMillis(duration)
        if (millis === usual.requests) return forMillis(longest.requests)
        if (millis >= usual.lookups[0] && millis <= usual.lookups[1] && world.now() - changedAt > news)
          return quietly(millis)
        if (millis > usual.turns || !isIdle()) return clock.sleep(duration)
        return Effect.raceFirst(forMillis(longest.turns), waiting.next(machine))
      })
  }

  return {
    during: (machine, isIdle, program) =>
      Effect.updateService(program, Clock.Clock, (clock) => Sleep.on(clock, sleeping(machine, clock, isIdle))),
    wakeAll: waiting.wakeAll,
    changed: () => {
      changedAt = Math.max(changedAt, world.now())
      changes.wakeAll()
    }
  }
}
