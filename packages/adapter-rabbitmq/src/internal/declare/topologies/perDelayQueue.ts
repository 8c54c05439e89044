/**
 * A queue for each queue and delay, `<queue>_dlq_<seconds>`, for systems that have these already. Delays are rounded up
 * to whole seconds, so that there are few.
 */
import type { Settings } from "../../../RabbitMqOptions.ts"
import * as Names from "../../names.ts"
import * as Objects from "../objects.ts"
import * as Quantisation from "./quantisation.ts"
import type { Route, Topology, TopologyRequest } from "./topology.ts"

const toSeconds = (delay: number): number => Math.ceil(delay / 1000) * 1000

/** The delays that have a queue, each once: those of the policy, and of random ones as many as its quantisation has. */
const delaysOf = (all: ReadonlyArray<Quantisation.Range>, settings: Settings): ReadonlyArray<number> => {
  const [limit = 0] = Quantisation.limitsOf(all, settings)
  const made = Quantisation.isJittered(all)
    ? Quantisation.make(
        all.map(([low, high]) => [toSeconds(low), toSeconds(high)] as const),
        { limit, resolution: 1000, digits: 0, extra: 0, kinds: "rungs" }
      )
    : undefined
  const delays = made?.rungs ?? all.map(([, high]) => high)
  return [...new Set(delays.map(toSeconds))].toSorted((a, b) => a - b)
}

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
  const all = retry === undefined ? [] : Quantisation.ranges(retry)
  const known = delaysOf(all, settings).map((delay) => way(delay))
  return {
    name: "perDelayQueue",
    objects: known.flatMap(({ objects }) => objects),
    others: [],
    notes: [
      "delays are rounded up to whole seconds",
      ...Quantisation.notes(
        all,
        known.map(({ kept }) => kept)
      )
    ],
    route: (delay) => (Quantisation.has(all, delay) ? known.find(({ kept }) => kept >= delay) : undefined) ?? way(delay)
  }
}
