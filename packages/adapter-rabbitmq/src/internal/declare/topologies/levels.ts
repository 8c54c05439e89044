/**
 * Levels: one queue for every binary digit of a delay. A message waits in the queues of the digits that are set, from the
 * highest to the lowest, and passes the others. They keep any delay with a constant number of queues, and no message
 * blocks another. https://docs.particular.net/transports/rabbitmq/delayed-delivery
 *
 * The digits travel as headers, so that the routing key stays the queue's own name: names of any length and with any
 * characters work, and none is taken for a part of another.
 */
import { Delay } from "@requeue/core/port"
import type { Settings } from "../../../RabbitMqOptions.ts"
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import type { Route } from "./topology.ts"

/** The number of digits that 24 hours need. */
export const digits = (unit: number): number => Math.ceil(Math.log2(Math.ceil(Delay.max / unit) + 1))

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

/** The objects of each level, lowest first: each leads to the one below. */
const levels = Objects.once((settings) =>
  Array.from({ length: digits(settings.resolution) }, (_, bit) => Objects.shared(levelObjects(settings, bit), settings))
)

/** The lowest levels, up to `count` of them. Of those below `lowest` there are the exchanges alone, which messages pass. */
const objects = (settings: Settings, count: number, lowest: number): ReadonlyArray<Objects.NativeObject> => [
  ...Objects.safetyNet(settings),
  ...levels(settings)
    .slice(0, count)
    .flatMap((level, bit) => (bit < lowest ? level.filter(({ _tag }) => _tag === "Exchange") : level))
]

/**
 * The last queues before a queue that is not ours to bind, which lead on by the default exchange: one in the place of the
 * lowest level, for messages that have this digit, and one without a wait for the others. They have one queue behind them,
 * so that where that is gone no other queue's messages wait. A header leads there, and not the routing key: where another
 * configuration binds the queue, that key leads to it as well, and each message would come twice.
 */
const homeObjects = (queue: string, settings: Settings, lowest: number): ReadonlyArray<Objects.NativeObject> =>
  Objects.shared(
    (lowest === 0 ? [0, settings.resolution] : [0]).flatMap((ttl): ReadonlyArray<Objects.NativeObject> => {
      const name = Names.home(settings, ttl, queue)
      const headers = { "x-match": "all", [Names.homeHeader(ttl > 0)]: queue }
      return [
        Objects.delayQueue(name, settings, { ttl, exchange: "" }),
        Objects.binding(Names.level(settings, settings.resolution, 0), name, "", headers)
      ]
    }),
    settings
  )

/** The objects that lead from the levels to a queue. */
const lastOf = (
  queue: string,
  settings: Settings,
  isOurs: boolean,
  lowest: number
): ReadonlyArray<Objects.NativeObject> =>
  isOurs ? [Objects.binding(Names.deliver(settings), queue, queue)] : homeObjects(queue, settings, lowest)

/** The headers of the digits that are set. Of a queue that is not ours, the lowest digit is that of its last queue. */
const headersOf = (units: number, queue: string, isOurs: boolean): Route["headers"] => {
  const bits = bitsOf(units)
  const waits = isOurs ? bits : bits.filter((bit) => bit > 0)
  return {
    ...Object.fromEntries(waits.map((bit) => [Names.levelHeader(bit), "1"])),
    ...(isOurs ? undefined : { [Names.homeHeader(bits.includes(0))]: queue })
  }
}

const bitsOf = (units: number): ReadonlyArray<number> =>
  Array.from({ length: Math.floor(Math.log2(units)) + 1 }, (_, bit) => bit).filter(
    (bit) => Math.floor(units / 2 ** bit) % 2 === 1
  )

/** Queues beside the levels that lead to a queue: the last one of a queue that is not ours has the place of the lowest level. */
export const extra = (isOurs: boolean): number => (isOurs ? 0 : 1)

/**
 * The route of any delay to a queue, in steps of the digit `lowest`, the lowest of all by default. It needs the levels from its
 * highest digit on: where another is gone, it goes on.
 */
export const router = (queue: string, settings: Settings, isOurs = true, lowest = 0): ((delay: number) => Route) => {
  const { resolution } = settings
  const step = resolution * 2 ** lowest
  /** The same array for the same number of levels. */
  const needed: Array<ReadonlyArray<Objects.NativeObject>> = []
  return (delay) => {
    const units = Math.max(1, Math.ceil(delay / step)) * 2 ** lowest
    const highest = Math.floor(Math.log2(units))
    return {
      exchange: Names.level(settings, resolution, highest),
      routingKey: queue,
      headers: headersOf(units, queue, isOurs),
      expiration: undefined,
      kept: units * resolution,
      objects: (needed[highest + 1] ??= [
        // The lowest level of a queue that is not ours is its last queue.
        ...objects(settings, highest + 1, isOurs ? lowest : Math.max(1, lowest)),
        ...lastOf(queue, settings, isOurs, lowest)
      ])
    }
  }
}
