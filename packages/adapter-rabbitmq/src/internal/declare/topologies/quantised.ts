/**
 * Rungs and levels for the delays of a policy, as its quantisation says. Delays that the policy does not have go through all
 * levels, which the first of them makes.
 */
import { type ConfigurationError, Delay } from "@requeue/core/port"
import * as Ladder from "./ladder.ts"
import * as Levels from "./levels.ts"
import * as Quantisation from "./quantisation.ts"
import { tooMany, type Topology, type TopologyRequest } from "./topology.ts"

/** Known delays for which a queue that shares no rungs has rungs of its own; levels are cheaper than more. */
const ownRungs = 8

type Kinds = Quantisation.Room["kinds"]

/** The rungs of exact delays, where they are few; else the best that the limit allows. */
const quantise = (
  all: ReadonlyArray<Quantisation.Range>,
  { found, settings }: TopologyRequest,
  kinds: Kinds,
  limit: number
): Quantisation.Quantisation | undefined => {
  const rungs = kinds === "both" && !found.isOurs ? Math.min(limit, ownRungs) : limit
  const few = kinds === "levels" ? undefined : Quantisation.fewRungs(all, rungs)
  if (few !== undefined) return { rungs: few, lowest: undefined, step: undefined }
  const { resolution } = settings
  const extra = Levels.extra(found.isOurs)
  return Quantisation.make(all, { limit, resolution, digits: Levels.digits(resolution), extra, kinds })
}

/** Fails where delays without jitter need more queues than `maxDelayQueues`. */
export const make = (request: TopologyRequest, kinds: Kinds): Topology | ConfigurationError.ConfigurationError => {
  const { found, queue, retry, settings } = request
  const all = retry === undefined ? [] : Quantisation.ranges(retry)
  const exactly = Levels.router(queue, settings, found.isOurs)
  const within = ([limit, ...others]: ReadonlyArray<number>): Quantisation.Quantisation | undefined =>
    limit === undefined ? undefined : (quantise(all, request, kinds, limit) ?? within(others))
  const made = all.length === 0 ? none : within(Quantisation.limitsOf(all, settings))
  if (made === undefined) {
    const limit = settings.maxDelayQueues
    // Only rungs alone are too few by default.
    if (limit === undefined) return make(request, "levels")
    const counts = Array.from({ length: Quantisation.most - limit }, (_, index) => limit + 1 + index)
    return tooMany(queue, limit, counts.find((count) => within([count]) !== undefined) ?? Number.POSITIVE_INFINITY)
  }
  const { lowest, rungs, step } = made
  const ladder = new Map(rungs.map((ms) => [ms, Ladder.route(request, ms)]))
  const stepped = lowest === undefined ? undefined : Levels.router(queue, settings, found.isOurs, lowest)
  const longest = Math.max(0, ...all.map(([, high]) => high))
  const isLadder = lowest === undefined && (rungs.length > 0 || kinds === "rungs")
  return {
    name: isLadder ? "ladder" : "levels",
    get objects() {
      return [...rungs.flatMap((ms) => Ladder.objects(request, ms)), ...(stepped?.(longest).objects ?? [])]
    },
    get others() {
      return exactly(Delay.max).objects
    },
    notes: [
      ...Quantisation.notes(all, rungs, step),
      ...(isLadder || lowest !== 0
        ? ["delays that are not the policy's go through the levels, which the first of them makes"]
        : [])
    ],
    route: (delay) => {
      if (!Quantisation.has(all, delay)) return exactly(delay)
      const rung = ladder.get(Quantisation.kept({ rungs, step }, delay))
      return rung ?? stepped?.(delay) ?? exactly(delay)
    }
  }
}

const none: Quantisation.Quantisation = { rungs: [], lowest: undefined, step: undefined }
