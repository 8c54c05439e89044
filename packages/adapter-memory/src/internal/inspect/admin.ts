/** Counts, peeks, purges, and what waits for its delay, for operators. */
import { Backlog, type Broker, BrokerError, type Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { nextDelivery } from "../consume/toDelivery.ts"
import type { StoredMessage } from "../queues.ts"
import { type Dependencies, open, shown } from "./browse.ts"

/** Messages of one page of a look. */
const page = 1000

const unsupported = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "memory",
    operation: "peek",
    queue,
    reason: "Unsupported",
    detail: "the broker cannot show messages without delivering them"
  })

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

const sift = ({ elapsed, now, publisher, queues }: Dependencies, name: string, removes: Sift[1]): Broker.Sifted => {
  const queue = queues.all.get(name)
  if (queue === undefined) return { looked: 0, removed: 0, isWhole: true }
  let removed = 0
  const all = [...queue.delayed]
  for (const message of all) {
    if (!removes({ delivery: shown(nextDelivery(message)), due: now() + message.due - elapsed() })) continue
    queues.removeDelayed(queue, message)
    removed++
  }
  if (removed > 0) publisher.admit?.(queue)
  return { looked: all.length, removed, isWhole: true }
}

type Sift = Parameters<NonNullable<Broker.Admin["sift"]>>

/** The broker's `admin`. */
export const make = (env: Dependencies): Broker.Admin => {
  const { capabilities, publisher, queues } = env
  /** The messages that are ready, the oldest first. */
  const oldest = (name: string, limit: number): Array<StoredMessage> => {
    const found: Array<StoredMessage> = []
    for (const message of queues.all.get(name)?.ready ?? []) {
      if (found.length >= limit) break
      found.push(message)
    }
    return found
  }

  /** Shows messages; a broker that cannot do so without delivering them counts that. */
  const show = (messages: ReadonlyArray<StoredMessage>): ReadonlyArray<Delivery.Delivery> => {
    const deliveries = messages.map((message) => shown(nextDelivery(message)))
    if (!capabilities.peek) for (const message of messages) message.deliveries++
    return deliveries
  }

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
    peek: (name, limit) =>
      capabilities.peek ? Effect.sync(() => show(oldest(name, limit))) : Effect.fail(unsupported(name)),
    look: (name, limit) =>
      Effect.sync(() => {
        const found = oldest(name, limit)
        return { next: Effect.sync(() => show(found.splice(0, page))) }
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
    backlog: ({ queue }) => Effect.sync(() => backlog(env, queue)),
    ...(capabilities.delayedMessages === true
      ? { sift: ({ queue }, removes) => Effect.sync(() => sift(env, queue, removes)) }
      : {})
  }
}
