/**
 * Beats: the regular checks of the adapter for changes that no notification reported. None is lost once the world is calm, and the
 * world's own processes have no consumers: there the checks are rare, or a long world would consist of little else.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import { isOfWorld, type Machine } from "../world/Machine.ts"
import * as Sleep from "../world/Sleep.ts"
import type { World } from "../world/World.ts"

/** Milliseconds between two checks: as the adapter has it, and here. */
const interval = { usual: 5000, rare: 120_000 }

/** The clock of a process, on which checks are rare. */
export const clockOf = ({ isCalm }: World, machine: Machine, clock: Clock.Clock): Clock.Clock =>
  Sleep.on(clock, (duration) => {
    const isRare = Duration.toMillis(duration) === interval.usual && (isOfWorld(machine) || isCalm())
    return clock.sleep(isRare ? Duration.millis(interval.rare) : duration)
  })
