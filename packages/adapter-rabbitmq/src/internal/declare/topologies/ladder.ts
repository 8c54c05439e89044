/**
 * Ladder: a rung for every delay of the policy, which is a queue with that TTL. A delay is one hop, and policies share
 * rungs. Delays that a handler asks for on its own go through the levels.
 */
import { RetryPolicy } from "@requeue/core/adapter-kit"
import type { Settings } from "../../../RabbitMqOptions.ts"
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

const rungObjects = (settings: Settings, ms: number): ReadonlyArray<Objects.NativeObject> => {
  const name = Names.rung(settings, ms)
  return Objects.shared<Objects.NativeObject>(
    [
      // An exchange in front of each rung lets the routing key stay the queue's name.
      Objects.exchange(name, "fanout"),
      Objects.delayQueue(name, settings, { ttl: ms, exchange: Names.deliver(settings) }),
      Objects.binding(name, name, "")
    ],
    settings
  )
}

const route = (queue: string, rung: number, settings: Settings): Route => ({
  exchange: Names.rung(settings, rung),
  routingKey: queue,
  headers: {},
  expiration: undefined,
  kept: rung,
  objects: [
    ...Objects.safetyNet(settings),
    ...rungObjects(settings, rung),
    Objects.binding(Names.deliver(settings), queue, queue)
  ]
})

/** The ladder of a policy; without a policy it has no rung. */
export const make = ({ queue, retry, settings }: TopologyRequest): Topology => {
  const known = (retry && rungs(retry)) ?? []
  const ladder = new Map(known.map((ms) => [ms, route(queue, ms, settings)]))
  const elsewhere = Levels.router(queue, settings)
  return {
    name: "ladder",
    objects: known.flatMap((ms) => rungObjects(settings, ms)),
    notes: ["delays that are not the policy's go through the levels, which the first of them makes"],
    route: (delay) => ladder.get(delay) ?? ladder.get(round(delay)) ?? elsewhere(delay)
  }
}
