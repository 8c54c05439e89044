/** Counts, browsers and purges, for operators. */
import { Backlog, type Broker } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { type Dependencies, open } from "./browse.ts"

/** Why it does not tell a number: it tells all, unless it was asked to be another broker. */
const hiding = "its capabilities hide it"

const backlog = ({ capabilities, elapsed, now, queues }: Dependencies, name: string): Backlog.Backlog => {
  const queue = queues.all.get(name)
  const [ready, delayed] = [queue?.ready.size() ?? 0, [...(queue?.delayed ?? [])]]
  const { counts } = capabilities
  const [first] = queue?.ready ?? []
  const told = {
    ready: counts.ready ? ready : undefined,
    inFlight: counts.inFlight ? (queue?.held ?? 0) - ready - delayed.length : undefined,
    delayed: counts.delayed ? delayed.length : undefined,
    backoff: counts.delayed ? Backlog.group(delayed.map(({ due }) => due - elapsed())) : undefined
  }
  const oldest = first === undefined ? 0 : Math.max(0, now() - first.metadata.firstPublished)
  const hidden = Object.entries(told).flatMap(([field, number]) => (number === undefined ? [[field, hiding]] : []))
  return {
    ...told,
    undelivered: 0,
    oldest,
    consumers: queue?.consumers.size ?? 0,
    remarks: Object.fromEntries(hidden),
    ...(queue === undefined ? { isMissing: true } : {})
  }
}

/** The broker's `admin`. */
export const make = (env: Dependencies): Broker.Admin => {
  const { capabilities, publisher, queues } = env
  return {
    counts: (name) =>
      Effect.sync(() => {
        const queue = queues.all.get(name)
        const [ready, delayed] = [queue?.ready.size() ?? 0, queue?.delayed.size ?? 0]
        const { counts } = capabilities
        return {
          ready: counts.ready ? ready : undefined,
          inFlight: counts.inFlight ? (queue?.held ?? 0) - ready - delayed : undefined,
          delayed: counts.delayed ? delayed : undefined,
          ...(queue === undefined ? { isMissing: true } : {})
        }
      }),
    browse: (options) => open(env, options),
    names: Effect.sync(() => [...queues.all.keys()]),
    purge: (name) =>
      Effect.sync(() => {
        const queue = queues.all.get(name)
        if (queue === undefined) return 0
        const removed = queues.purge(queue)
        publisher.admit?.(queue)
        return removed
      }),
    backlog: ({ queue }) => Effect.sync(() => backlog(env, queue))
  }
}
