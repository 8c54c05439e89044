/**
 * One delay queue, whose TTL is the greatest common divisor of the policy's delays, and a waiting queue behind it that
 * sends every message round again until it is due. Few queues; every round of every message is a write.
 */
import { RetryPolicy } from "@requeue/core/adapter-kit"
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import type { Request, Topology } from "./topology.ts"

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))

/** The TTL of a round: a whole number of resolutions. */
export const round = (delays: ReadonlyArray<number>, resolution: number): number => {
  const rounded = delays.filter((delay) => delay > 0).map((delay) => Math.ceil(delay / resolution) * resolution)
  return rounded.length === 0 ? 1000 : rounded.reduce(divisor)
}

export const make = ({ queue, retry, settings }: Request): Topology => {
  const delays = (retry === undefined ? [] : RetryPolicy.schedule(retry)).flatMap(({ delay }) => [...delay])
  const ttl = round(delays, settings.resolution)
  const delayed = Names.fill(settings.names.delayQueue ?? "{queue}.wait.v1.{ms}", queue, ttl)
  const waiting = Names.fill(settings.names.waitingQueue ?? "{queue}.waiting.v1", queue)
  const objects = [
    Objects.exchange(Names.deliver(settings), "direct", Names.undelivered(settings)),
    Objects.delayQueue(waiting, settings, { exchange: Names.deliver(settings), key: queue }, settings.assert),
    Objects.binding(Names.deliver(settings), waiting, waiting),
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
