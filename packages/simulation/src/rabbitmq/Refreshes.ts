/**
 * The adapter's checks for deleted objects: up to a hundred requests, every 25 to 35 s. They are rare a minute after the last fault,
 * since nothing is deleted any more.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Sleep from "../world/Sleep.ts"
import type { World } from "../world/World.ts"

/** Milliseconds between two checks: as the adapter has it, and here. */
const pause = { least: 25_000, most: 35_000, rare: 1_200_000 }

/** Milliseconds after the last fault in which checks are as frequent as usual. */
const news = 60_000

/** A subscription whose checks are rare. */
export const during = <A, E, R>(
  { now, scenario }: World,
  subscription: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.updateService(subscription, Clock.Clock, (clock) =>
    Sleep.on(clock, (duration) => {
      const millis = Duration.toMillis(duration)
      const isRare = millis >= pause.least && millis <= pause.most && now() > scenario.calmAt + news
      return clock.sleep(isRare ? Duration.millis(pause.rare) : duration)
    })
  )
