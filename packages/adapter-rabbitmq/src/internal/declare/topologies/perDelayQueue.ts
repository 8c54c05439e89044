/**
 * One queue for each queue and delay, `<queue>_dlq_<seconds>`, for systems that have these already. Delays are rounded up to whole
 * seconds, to need few queues.
 */
import { Delay } from "@requeue/core/port"
import type { Settings } from "../../../RabbitMqOptions.ts"
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import * as Quantisation from "./quantisation.ts"
import * as Ranges from "./ranges.ts"
import * as Rounding from "./rounding.ts"
import type { Route, Topology, TopologyRequest } from "./topology.ts"

const toSeconds = (delay: number): number => Math.ceil(delay / 1000) * 1000

/** The delays that have a queue, each once: those of the policy, with random delays rounded up to a few. */
const delaysOf = (all: ReadonlyArray<Ranges.Range>, settings: Settings): ReadonlyArray<number> => {
  const [limit = 0] = Quantisation.limitsOf(all, settings)
  const made = Ranges.isJittered(all)
    ? Quantisation.make(
        all.map(([low, high]) => [toSeconds(low), toSeconds(high)] as const),
        { limit, resolution: 1000, highest: 0, extra: 0, kinds: "rungs" }
      )
    : undefined
  const delays = made?.rungs ?? all.map(([, high]) => high)
  return [...new Set(delays.map(toSeconds))].toSorted((a, b) => a - b)
}

/** Delays from a second to a day, each longer than the one before by the same factor. */
const grid = (count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, index) =>
    Math.min(Delay.max, toSeconds(1000 * (Delay.max / 1000) ** (index / (count - 1))))
  )

/** The queues of a policy's delays. The first message with another delay declares its queue. */
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
  const all = retry === undefined ? [] : Ranges.ofPolicy(retry)
  const known = delaysOf(all, settings).map((delay) => way(delay))
  const rounding = { rungs: known.map(({ kept }) => kept), levels: [] }
  const { maxOtherDelayQueues } = settings
  const others = maxOtherDelayQueues === undefined ? undefined : grid(maxOtherDelayQueues)
  return {
    name: "perDelayQueue",
    objects: known.flatMap(({ objects }) => objects),
    others: others?.flatMap((delay) => way(delay).objects) ?? [],
    isUnbounded: others === undefined,
    lateness: all.length === 0 ? undefined : Rounding.lateness(rounding, all),
    notes: [
      "delays are rounded up to whole seconds",
      ...Rounding.notes(rounding, all),
      ...(others === undefined
        ? []
        : [`delays outside the policy are rounded up to ${others.map(Delay.format).join(", ")}`])
    ],
    route: (delay) =>
      (Ranges.has(all, delay) ? known.find(({ kept }) => kept >= delay) : undefined) ??
      way(others?.find((other) => other >= delay) ?? delay)
  }
}
