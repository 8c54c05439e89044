/**
 * Ladder: a rung for each of some delays, which is a queue with that TTL. A delay is one hop, and policies share the rungs of
 * queues that are ours.
 */
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import type { Route, TopologyRequest } from "./topology.ts"

/**
 * The name of a rung. A queue that is not ours to bind has rungs of its own, which lead straight back to it: with one queue behind
 * each, no other queue's messages wait where that is gone.
 */
const nameOf = ({ found, queue, settings }: TopologyRequest, ms: number): string =>
  found.isOurs ? Names.rung(settings, ms) : Names.homeRung(settings, ms, queue)

/** The objects of a rung. */
export const objects = (request: TopologyRequest, ms: number): ReadonlyArray<Objects.NativeObject> => {
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

/** The route through a rung. */
export const route = (request: TopologyRequest, rung: number): Route => {
  const { found, queue, settings } = request
  const own = objects(request, rung)
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
