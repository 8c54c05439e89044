/** Counts, browsers and purges, for operators. */
import { Backlog, type Broker, type Capabilities } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Queue } from "../queues.ts"
import { type Dependencies, open } from "./browse.ts"

/** The remark on a figure that imitated capabilities hide. */
const hiding = "the imitated capabilities exclude it"

const count = ({ counts }: Capabilities.Capabilities, queue: Queue | undefined) => {
  const [ready, delayed, blocked] = [queue?.ready.size() ?? 0, queue?.delayed.size ?? 0, queue?.behind.size ?? 0]
  return {
    ready: counts.ready ? ready : undefined,
    inFlight: counts.inFlight ? (queue?.held ?? 0) - ready - delayed - blocked : undefined,
    delayed: counts.delayed ? delayed : undefined,
    ...(blocked === 0 ? undefined : { blocked }),
    ...(queue === undefined ? { isMissing: true } : {})
  }
}

const backlog = ({ capabilities, elapsed, now, queues }: Dependencies, name: string): Backlog.Backlog => {
  const queue = queues.all.get(name)
  const [first] = queue?.ready ?? []
  const dues = Array.from(queue?.delayed ?? [], ({ due }) => due - elapsed())
  const counts = {
    ...count(capabilities, queue),
    backoff: capabilities.counts.delayed ? Backlog.group(dues) : undefined
  }
  const hidden = Object.entries(counts).flatMap(([field, number]) => (number === undefined ? [[field, hiding]] : []))
  return {
    ...counts,
    undelivered: 0,
    oldest: first === undefined ? 0 : Math.max(0, now() - first.metadata.firstPublished),
    consumers: queue?.consumers.size ?? 0,
    remarks: Object.fromEntries(hidden)
  }
}

export const make = (env: Dependencies): Broker.Admin => {
  const { capabilities, publisher, queues } = env
  return {
    counts: (name) => Effect.sync(() => count(capabilities, queues.all.get(name))),
    browse: (options) => Effect.suspend(() => open(env, options)),
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
