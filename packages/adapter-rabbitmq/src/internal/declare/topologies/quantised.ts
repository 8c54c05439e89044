/** Rungs and levels for the delays of a policy, as its quantisation says. */
import type { ConfigurationError } from "@requeue/core/port"
import * as Ladder from "./ladder.ts"
import * as Levels from "./levels.ts"
import * as Others from "./others.ts"
import * as Quantisation from "./quantisation.ts"
import * as Ranges from "./ranges.ts"
import * as Rounding from "./rounding.ts"
import { tooMany, type Topology, type TopologyRequest } from "./topology.ts"

/** Rungs that a queue may have which shares none; levels are cheaper than more. */
const ownRungs = 8

type Kinds = Quantisation.Room["kinds"]

/** The rungs of exact delays, where they are few; else the best rounding that the limit allows. */
const quantise = (
  all: ReadonlyArray<Ranges.Range>,
  { found, settings }: TopologyRequest,
  kinds: Kinds,
  limit: number
): Rounding.Rounding | undefined => {
  const rungs = kinds === "both" && !found.isOurs ? Math.min(limit, ownRungs) : limit
  const few = kinds === "levels" ? undefined : Quantisation.fewRungs(all, rungs)
  if (few !== undefined) return { rungs: few, levels: [] }
  const { resolution } = settings
  const [highest, extra] = [Levels.highest(resolution), Levels.extra(found.isOurs)]
  return Quantisation.make(all, { limit, resolution, highest, extra, kinds })
}

/** Fails where delays without jitter need more queues than `maxDelayQueues`. */
export const make = (request: TopologyRequest, kinds: Kinds): Topology | ConfigurationError.ConfigurationError => {
  const { found, queue, retry, settings } = request
  const all = retry === undefined ? [] : Ranges.ofPolicy(retry)
  const others = Others.make(request)
  const within = ([limit, ...further]: ReadonlyArray<number>): Rounding.Rounding | undefined =>
    limit === undefined ? undefined : (quantise(all, request, kinds, limit) ?? within(further))
  const made = all.length === 0 ? none : within(Quantisation.limitsOf(all, settings))
  if (made === undefined) {
    const limit = settings.maxDelayQueues
    // Only rungs alone are too few by default.
    if (limit === undefined) return make(request, "levels")
    const counts = Array.from({ length: Ranges.maxQueues - limit }, (_, index) => limit + 1 + index)
    return tooMany(queue, limit, counts.find((count) => within([count]) !== undefined) ?? Number.POSITIVE_INFINITY)
  }
  const { levels, rungs } = made
  const ladder = new Map(rungs.map((ms) => [ms, Ladder.route(request, ms)]))
  const stepped = levels.length === 0 ? undefined : Levels.router(queue, settings, found.isOurs, levels)
  const isLadder = levels.length === 0 && (rungs.length > 0 || kinds === "rungs")
  return {
    name: isLadder ? "ladder" : "levels",
    get objects() {
      const sum = levels.reduce((total, ttl) => total + ttl, 0)
      return [...rungs.flatMap((ms) => Ladder.objects(request, ms)), ...(stepped?.(sum).objects ?? [])]
    },
    get others() {
      return others.others
    },
    notes: [...Rounding.notes(made, all), ...others.notes],
    lateness: all.length === 0 ? undefined : Rounding.lateness(made, all),
    route: (delay) => {
      if (!Ranges.has(all, delay)) return others.route(delay)
      const rung = ladder.get(Rounding.kept(made, delay))
      return rung ?? stepped?.(delay) ?? others.route(delay)
    }
  }
}

const none: Rounding.Rounding = { rungs: [], levels: [] }
