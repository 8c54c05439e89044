/**
 * A queue for each queue and delay, `<queue>_dlq_<seconds>`, for systems that have these already. Delays are rounded up
 * to whole seconds, so that there are few.
 */
import { RetryPolicy } from "@requeue/core/port"
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import type { Route, Topology, TopologyRequest } from "./topology.ts"

const toSeconds = (delay: number): number => Math.ceil(delay / 1000) * 1000

/** The queues of a policy's delays; one for another delay is declared by the first message that needs it. */
export const make = ({ found, queue, retry, settings }: TopologyRequest): Topology => {
  const template = settings.names.delayQueue ?? Names.delayQueues.perDelayQueue
  const back = Names.back(found, settings)
  const way = (delay: number): Route => {
    const kept = toSeconds(delay)
    const name = Names.fill(template, queue, kept)
    return {
      exchange: "",
      routingKey: name,
      headers: {},
      expiration: undefined,
      kept,
      objects: [
        Objects.delayQueue(name, settings, { ttl: kept, exchange: back, key: queue }, settings.assert),
        ...(found.isOurs ? [Objects.binding(back, queue, queue)] : [])
      ]
    }
  }
  const delays = new Set(
    (retry === undefined ? [] : RetryPolicy.schedule(retry)).flatMap(({ delay }) => delay.map(toSeconds))
  )
  delays.delete(0)
  const known = new Map([...delays].map((delay) => [delay, way(delay)]))
  return {
    name: "perDelayQueue",
    objects: [...known.values()].flatMap(({ objects }) => objects),
    notes: ["delays are rounded up to whole seconds"],
    route: (delay) => known.get(toSeconds(delay)) ?? way(delay)
  }
}
