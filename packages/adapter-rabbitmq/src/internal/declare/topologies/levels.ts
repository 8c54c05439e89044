/**
 * Levels: one queue for each binary digit of a delay. A message waits in the queues of its digits, from the highest to the lowest,
 * and passes the others. Levels keep any delay with a constant number of queues, and no message blocks another.
 * https://docs.particular.net/transports/rabbitmq/delayed-delivery
 *
 * Headers carry the digits, and the routing key stays the queue's name. So names may have any length and any characters.
 */
import { Delay } from "@requeue/core/port"
import type { Settings } from "../../../RabbitMqOptions.ts"
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import { sumOf } from "./rounding.ts"
import type { Route } from "./topology.ts"

/**
 * The highest digit that has a level. It is one more than 24 hours need, because a sum of only some of the lower levels may be
 * shorter than 24 hours.
 */
export const highest = (unit: number): number => Math.ceil(Math.log2(Math.ceil(Delay.max / unit) + 1))

/** The TTLs of the levels that keep every delay of up to 24 hours. */
export const complete = (unit: number): ReadonlyArray<number> =>
  Array.from({ length: highest(unit) }, (_, digit) => unit * 2 ** digit)

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
  Array.from({ length: highest(settings.resolution) + 1 }, (_, bit) =>
    Objects.shared(levelObjects(settings, bit), settings)
  )
)

/** The objects of all levels, whichever of them a configuration uses. */
export const allObjects = (settings: Settings): ReadonlyArray<Objects.NativeObject> => levels(settings).flat()

/** The lowest levels, up to `count` of them. A level whose digit is not among `digits` is an exchange alone, which messages pass. */
const objects = (
  settings: Settings,
  count: number,
  digits: ReadonlySet<number>
): ReadonlyArray<Objects.NativeObject> => [
  ...Objects.safetyNet(settings),
  ...levels(settings)
    .slice(0, count)
    .flatMap((level, bit) => (digits.has(bit) ? level : level.filter(({ _tag }) => _tag === "Exchange")))
]

/**
 * The last queues before a queue that the adapter may not bind. They lead to it through the default exchange. One replaces the
 * lowest level, for messages that have this digit; the other delays nothing. Only this queue is after them: if it is deleted, no
 * other queue's messages wait. A header leads to them and not the routing key, because another configuration may have bound the
 * queue by that key, and each message would then arrive twice.
 */
const homeObjects = (queue: string, settings: Settings, hasLowest: boolean): ReadonlyArray<Objects.NativeObject> =>
  Objects.shared(
    (hasLowest ? [0, settings.resolution] : [0]).flatMap((ttl): ReadonlyArray<Objects.NativeObject> => {
      const name = Names.home(settings, ttl, queue)
      const headers = { "x-match": "all", [Names.homeHeader(ttl > 0)]: queue }
      return [
        Objects.delayQueue(name, settings, { ttl, exchange: "" }),
        Objects.binding(Names.level(settings, settings.resolution, 0), name, "", headers)
      ]
    }),
    settings
  )

/** The headers of the digits that are set. If the adapter may not bind the queue, its last queue has the lowest digit. */
const headersOf = (bits: ReadonlyArray<number>, queue: string, isOurs: boolean): Route["headers"] => {
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

/** Queues that lead from the levels to a queue: one, if the adapter may not bind it. A second one replaces the lowest level. */
export const extra = (isOurs: boolean): number => (isOurs ? 0 : 1)

/**
 * Routes delays to a queue through these levels. A route needs the levels from its highest digit down: a message passes those
 * that it does not wait in.
 */
export const router = (
  queue: string,
  settings: Settings,
  isOurs = true,
  ttls = complete(settings.resolution)
): ((delay: number) => Route) => {
  const { resolution } = settings
  const digits = new Set(ttls.map((ttl) => Math.log2(ttl / resolution)))
  const hasLowest = digits.has(0)
  // The last queue of a queue that is not ours replaces its lowest level.
  const queues = isOurs ? digits : new Set([...digits].filter((digit) => digit > 0))
  const last = isOurs
    ? [Objects.binding(Names.deliver(settings), queue, queue)]
    : homeObjects(queue, settings, hasLowest)
  /** The same array for the same number of levels. */
  const needed: Array<ReadonlyArray<Objects.NativeObject>> = []
  return (delay) => {
    const kept = sumOf(ttls, delay)
    const bits = bitsOf(kept / resolution)
    const count = bits.at(-1)! + 1
    return {
      exchange: Names.level(settings, resolution, count - 1),
      routingKey: queue,
      headers: headersOf(bits, queue, isOurs),
      expiration: undefined,
      kept,
      objects: (needed[count] ??= [...objects(settings, count, queues), ...last])
    }
  }
}
