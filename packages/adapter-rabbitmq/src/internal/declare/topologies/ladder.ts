/**
 * Ladder: one queue with a queue-wide TTL for every delay of the policy. One hop per delay, and queues that policies
 * share. Delays that a handler asks for on its own go through the levels.
 */
import { RetryPolicy } from "@requeue/core/adapter-kit"
import type { Settings } from "../../../RabbitMqOptions.ts"
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import * as Levels from "./levels.ts"
import type { Request, Route, Topology } from "./topology.ts"

/** More rungs than this, and levels are cheaper. */
const limit = 32

/**
 * The next round delay, at most a twentieth longer: what jittered delays are rounded up to, so that they share rungs.
 */
export const round = (delay: number): number => {
  const power = 10 ** Math.floor(Math.log10(delay))
  const step = Math.max(1, power / (delay < 2 * power ? 20 : delay < 5 * power ? 10 : 4))
  return Math.ceil(Math.ceil(delay / step) * step)
}

/** Every delay that the policy can ask for, rounded where it is spread; `undefined` when there are too many. */
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
  // An unlimited policy is known as far as its schedule goes; what comes later falls back to the levels.
  return found.size > limit ? undefined : [...found].toSorted((a, b) => a - b)
}

const rungObjects = (settings: Settings, ms: number): ReadonlyArray<Objects.Object> => {
  const name = Names.rung(settings, ms)
  return [
    // In front of each rung stands an exchange, so that the routing key can stay the queue's name.
    Objects.exchange(name, "fanout"),
    Objects.delayQueue(name, settings, { ttl: ms, exchange: Names.deliver(settings) }),
    Objects.binding(name, name, "")
  ]
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

export const make = ({ queue, retry, settings }: Request): Topology => {
  const known = (retry && rungs(retry)) ?? []
  const ladder = new Map(known.map((ms) => [ms, route(queue, ms, settings)]))
  const elsewhere = Levels.router(queue, settings)
  return {
    name: "ladder",
    objects: [...Levels.objects(settings), ...known.flatMap((ms) => rungObjects(settings, ms))],
    notes: ["delays that are not the policy's go through the levels"],
    route: (delay) => ladder.get(delay) ?? ladder.get(round(delay)) ?? elsewhere(delay)
  }
}
