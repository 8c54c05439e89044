/**
 * The delays that no retry of the policy has: those that handlers and producers ask for. They go through levels, which all queues
 * share, and which the first such message declares.
 */
import { Delay } from "@requeue/core/port"
import * as Objects from "../objects.ts"
import * as Levels from "./levels.ts"
import * as Quantisation from "./quantisation.ts"
import type { Range } from "./ranges.ts"
import { kept, type Rounding } from "./rounding.ts"
import type { Topology, TopologyRequest } from "./topology.ts"

/** Ranges for every delay from a second to a day. */
const ranges: ReadonlyArray<Range> = [
  ...Array.from({ length: 17 }, (_, index): Range => [0, 1000 * 2 ** index]),
  [0, Delay.max]
]

const levelsFor = (isOurs: boolean) =>
  Objects.once(({ maxOtherDelayQueues: limit = Number.POSITIVE_INFINITY, resolution }): ReadonlyArray<number> => {
    const complete = Levels.complete(resolution)
    const extra = Levels.extra(isOurs)
    if (complete.length + extra <= limit) return complete
    const room = { limit, resolution, highest: Levels.highest(resolution), extra, kinds: "levels" } as const
    return Quantisation.make(ranges, room)?.levels ?? complete
  })

const [levelsOfOurs, levelsOfTheirs] = [levelsFor(true), levelsFor(false)]

/** How many times as long as a delay of a second or more the levels keep it at most, rounded up. */
const worstFactor = (rounding: Rounding): number =>
  Math.ceil(
    Array.from({ length: 400 }, (_, index) => Math.ceil(1000 * 86_400 ** (index / 399))).reduce(
      (worst, delay) => Math.max(worst, kept(rounding, delay) / delay),
      1
    )
  )

/** The part of a topology that keeps these delays. */
export const make = ({
  found,
  queue,
  settings
}: Pick<TopologyRequest, "found" | "queue" | "settings">): Required<Pick<Topology, "notes" | "others" | "route">> => {
  const levels = (found.isOurs ? levelsOfOurs : levelsOfTheirs)(settings)
  const route = Levels.router(queue, settings, found.isOurs, levels)
  const isRounded = levels.length < Levels.complete(settings.resolution).length
  return {
    route,
    get others() {
      return route(levels.reduce((sum, ttl) => sum + ttl, 0)).objects
    },
    notes: isRounded
      ? [
          `maxOtherDelayQueues rounds up delays outside the policy: one of a second or more lasts up to ` +
            `${worstFactor({ rungs: [], levels })} times as long`
        ]
      : []
  }
}
