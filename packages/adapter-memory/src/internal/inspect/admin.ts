/** Counts, peeks, purges, and what waits for its delay, for operators. */
import { Backlog, type Broker, BrokerError, type Capabilities, type Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { nextDelivery } from "../consume/toDelivery.ts"
import type { Publisher } from "../publish/publisher.ts"
import type { Queues, StoredMessage } from "../queues.ts"

/** A message for somebody who looks at it, and must not change it. */
const shown = (message: StoredMessage): Delivery.Delivery => {
  const delivery = nextDelivery(message)
  return { ...delivery, body: new Uint8Array(delivery.body), metadata: structuredClone(delivery.metadata) }
}

/** The broker's own. */
interface Dependencies {
  readonly queues: Queues
  readonly publisher: Publisher
  readonly capabilities: Capabilities.Capabilities
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
}

/** Why it does not tell a number: it tells all, unless it was asked to be another broker. */
const hiding = "its capabilities hide it"

const backlog = ({ capabilities, elapsed, now, queues }: Dependencies, name: string): Backlog.Backlog => {
  const { consumers, delayed, held, ready } = queues.get(name)
  const { counts } = capabilities
  const [first] = ready
  const told = {
    ready: counts.ready ? ready.size() : undefined,
    inFlight: counts.inFlight ? held - ready.size() - delayed.size : undefined,
    delayed: counts.delayed ? delayed.size : undefined,
    backoff: counts.delayed ? Backlog.group(Array.from(delayed, ({ due }) => due - elapsed())) : undefined
  }
  const oldest = first === undefined ? 0 : Math.max(0, now() - first.metadata.firstPublished)
  const hidden = Object.entries(told).flatMap(([field, number]) => (number === undefined ? [[field, hiding]] : []))
  return { ...told, undelivered: 0, oldest, consumers: consumers.size, remarks: Object.fromEntries(hidden) }
}

const sift = ({ elapsed, now, publisher, queues }: Dependencies, name: string, removes: Sift[1]): Broker.Sifted => {
  const queue = queues.get(name)
  let removed = 0
  const all = [...queue.delayed]
  for (const message of all) {
    if (!removes({ delivery: shown(message), due: now() + message.due - elapsed() })) continue
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
  return {
    counts: (name) =>
      Effect.sync(() => {
        const { delayed, held, ready } = queues.get(name)
        const { counts } = capabilities
        return {
          ready: counts.ready ? ready.size() : undefined,
          inFlight: counts.inFlight ? held - ready.size() - delayed.size : undefined,
          delayed: counts.delayed ? delayed.size : undefined
        }
      }),
    peek: (name, limit) =>
      Effect.suspend(() => {
        if (!capabilities.peek) {
          const detail = "the broker cannot show messages without delivering them"
          return Effect.fail(
            new BrokerError.BrokerError({
              broker: "memory",
              operation: "peek",
              queue: name,
              reason: "Unsupported",
              detail
            })
          )
        }
        const seen: Array<Delivery.Delivery> = []
        for (const message of queues.get(name).ready) {
          if (seen.length >= limit) break
          seen.push(shown(message))
        }
        return Effect.succeed(seen)
      }),
    purge: (name) =>
      Effect.sync(() => {
        const queue = queues.get(name)
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
