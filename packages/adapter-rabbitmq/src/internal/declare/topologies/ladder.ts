/**
 * Ladder: one rung for each delay. A rung is a queue with that TTL, so a delay is one hop. All policies share rungs, except those
 * of queues that the adapter may not bind.
 */
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import type { Route, TopologyRequest } from "./topology.ts"

/**
 * The name of a rung. A queue that the adapter may not bind has separate rungs, which lead straight back to it. If that queue is
 * deleted, no other queue's messages wait.
 */
const nameOf = ({ found, queue, settings }: TopologyRequest, ms: number): string =>
  found.isOurs ? Names.rung(settings, ms) : Names.homeRung(settings, ms, queue)

/** The objects of a rung. */
export const objects = (request: TopologyRequest, ms: number): ReadonlyArray<Objects.NativeObject> => {
  const { found, settings } = request
  const name = nameOf(request, ms)
  return Objects.shared<Objects.NativeObject>(
    [
      // Each rung has an exchange, so the routing key can stay the queue's name.
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
