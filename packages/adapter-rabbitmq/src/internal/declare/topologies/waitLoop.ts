/**
 * A delay queue whose TTL is the greatest common divisor of the policy's delays, followed by a waiting queue. The consumer sends
 * each message from there through the delay queue again until it is due. That takes two queues, and one write for each round.
 */
import { RetryPolicy } from "@requeue/core/port"
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import type { Topology, TopologyRequest } from "./topology.ts"

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))

/** Milliseconds of a round, a multiple of `resolution`; a second if the policy has no delays. */
export const round = (delays: ReadonlyArray<number>, resolution: number): number => {
  const rounded = delays.filter((delay) => delay > 0).map((delay) => Math.ceil(delay / resolution) * resolution)
  return rounded.length === 0 ? 1000 : rounded.reduce(divisor)
}

/** The two queues of a policy. */
export const make = ({ found, queue, retry, settings }: TopologyRequest): Topology => {
  const delays = (retry === undefined ? [] : RetryPolicy.schedule(retry)).flatMap(({ delay }) => [...delay])
  const ttl = round(delays, settings.resolution)
  const delayed = Names.fill(settings.names.delayQueue ?? Names.delayQueues.waitLoop, queue, ttl)
  const waiting = Names.waiting(settings, queue)
  const objects = [
    // An existing layout may pass messages on through another exchange.
    ...(settings.assert === "declare"
      ? [Objects.exchange(Names.deliver(settings), "direct", Names.undelivered(settings))]
      : []),
    Objects.delayQueue(waiting, settings, { exchange: Names.back(found, settings), key: queue }, settings.assert),
    Objects.binding(Names.deliver(settings), waiting, waiting, {}, settings.assert),
    Objects.delayQueue(delayed, settings, { ttl, exchange: Names.deliver(settings), key: waiting }, settings.assert)
  ]
  return {
    name: "waitLoop",
    objects,
    notes: [`every ${ttl} ms, each waiting message is written once`, "messages move on only while a consumer runs"],
    waiting,
    route: () => ({ exchange: "", routingKey: delayed, headers: {}, expiration: undefined, kept: ttl, objects })
  }
}
