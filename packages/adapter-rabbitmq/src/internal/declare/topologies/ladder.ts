/**
 * Ladder: a rung for every delay of the policy, which is a queue with that TTL. A delay is one hop, and policies share
 * the rungs of queues that are ours. Delays that a handler asks for on its own go through the levels.
 */
import { RetryPolicy } from "@requeue/core/port"
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import * as Levels from "./levels.ts"
import type { Route, Topology, TopologyRequest } from "./topology.ts"

/** With more rungs, levels are cheaper. */
const limit = 32

/** The next round delay, at most a twentieth longer. Jittered delays are rounded up to it, so that they share rungs. */
export const round = (delay: number): number => {
  const power = 10 ** Math.floor(Math.log10(delay))
  const step = Math.max(1, power / (delay < 2 * power ? 20 : delay < 5 * power ? 10 : 4))
  return Math.ceil(Math.ceil(delay / step) * step)
}

/** Every delay that the policy can ask for, rounded where it has jitter; `undefined` for more than 32. */
export const rungs = (retry: RetryPolicy.RetryPolicy): ReadonlyArray<number> | undefined => {
  const found = new Set<number>()
  const steps = RetryPolicy.schedule(retry)
  for (const { delay } of steps) {
    const [low, high] = delay
    if (low === high) found.add(high)
    else
      for (let rung = round(Math.max(1, low)); ; rung = round(rung + 1)) {
        found.add(rung)
        if (rung >= high || found.size > limit) break
      }
  }
  found.delete(0)
  // The schedule of an unlimited policy is cut off. Later delays go through the levels.
  return found.size > limit ? undefined : [...found].toSorted((a, b) => a - b)
}

/**
 * The name of a rung. A queue that is not ours to bind has rungs of its own, which lead straight back to it: with one queue behind
 * each, no other queue's messages wait where that is gone.
 */
const nameOf = ({ found, queue, settings }: TopologyRequest, ms: number): string =>
  found.isOurs ? Names.rung(settings, ms) : Names.homeRung(settings, ms, queue)

const rungObjects = (request: TopologyRequest, ms: number): ReadonlyArray<Objects.NativeObject> => {
  const { found, settings } = request
  const name = nameOf(request, ms)
  return Objects.shared<Objects.NativeObject>(
    [
      // An exchange in front of each rung lets the routing key stay the queue's name.
      Objects.exchange(name, "fanout"),
      Objects.delayQueue(name, settings, { ttl: ms, exchange: Names.back(found, settings) }),
      Objects.binding(name, name, "")
    ],
    settings
  )
}

const route = (request: TopologyRequest, rung: number): Route => {
  const { found, queue, settings } = request
  const own = rungObjects(request, rung)
  return {
    exchange: nameOf(request, rung),
    routingKey: queue,
    headers: {},
    expiration: undefined,
    kept: rung,
    objects: found.isOurs
      ? [...Objects.safetyNet(settings), ...own, Objects.binding(Names.deliver(settings), queue, queue)]
      : own
  }
}

/** The ladder of a policy; without a policy it has no rung. */
export const make = (request: TopologyRequest): Topology => {
  const { found, queue, retry, settings } = request
  const known = (retry && rungs(retry)) ?? []
  const ladder = new Map(known.map((ms) => [ms, route(request, ms)]))
  const elsewhere = Levels.router(queue, settings, found.isOurs)
  return {
    name: "ladder",
    objects: known.flatMap((ms) => rungObjects(request, ms)),
    notes: ["delays that are not the policy's go through the levels, which the first of them makes"],
    route: (delay) => ladder.get(delay) ?? ladder.get(round(delay)) ?? elsewhere(delay)
  }
}
