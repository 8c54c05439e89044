/**
 * Levels: one queue for every binary digit of a delay. A message waits in the queues of the digits that are set, from the
 * highest to the lowest, and passes the others. They keep any delay with a constant number of queues, and no message
 * blocks another. https://docs.particular.net/transports/rabbitmq/delayed-delivery
 *
 * The digits travel as headers, so that the routing key stays the queue's own name: names of any length and with any
 * characters work, and none is taken for a part of another.
 */
import { Delay } from "@requeue/core/adapter-kit"
import type { Settings } from "../../../RabbitMqOptions.ts"
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import type { Route, Topology, TopologyRequest } from "./topology.ts"

/** The number of digits that 24 hours need. */
const digits = (unit: number): number => Math.ceil(Math.log2(Math.ceil(Delay.max / unit) + 1))

const next = (settings: Settings, bit: number): string =>
  bit === 0 ? Names.deliver(settings) : Names.level(settings, settings.resolution, bit - 1)

const levelObjects = (settings: Settings, bit: number): ReadonlyArray<Objects.NativeObject> => {
  const name = Names.level(settings, settings.resolution, bit)
  const after = next(settings, bit)
  return [
    // A message without this digit goes straight on.
    Objects.exchange(name, "headers", after),
    Objects.delayQueue(name, settings, { ttl: settings.resolution * 2 ** bit, exchange: after }),
    Objects.binding(name, name, "", { "x-match": "all", [Names.levelHeader(bit)]: "1" })
  ]
}

/** All levels, lowest first: each leads to the one below. */
export const objects = (settings: Settings): ReadonlyArray<Objects.NativeObject> => [
  ...Objects.safetyNet(settings),
  ...Array.from({ length: digits(settings.resolution) }, (_, bit) => levelObjects(settings, bit)).flat()
]

/** The route of any delay to a queue; all routes need the same objects. */
export const router = (queue: string, settings: Settings): ((delay: number) => Route) => {
  const { resolution } = settings
  const needed = [...objects(settings), Objects.binding(Names.deliver(settings), queue, queue)]
  return (delay) => {
    const units = Math.max(1, Math.ceil(delay / resolution))
    const top = Math.floor(Math.log2(units))
    const set = Array.from({ length: top + 1 }, (_, bit) => bit).filter((bit) => Math.floor(units / 2 ** bit) % 2 === 1)
    return {
      exchange: Names.level(settings, resolution, top),
      routingKey: queue,
      headers: Object.fromEntries(set.map((bit) => [Names.levelHeader(bit), "1"])),
      expiration: undefined,
      kept: units * resolution,
      objects: needed
    }
  }
}

/** The levels, which are the same for every queue and policy. */
export const make = ({ queue, settings }: TopologyRequest): Topology => ({
  name: "levels",
  objects: objects(settings),
  notes: [],
  route: router(queue, settings)
})
