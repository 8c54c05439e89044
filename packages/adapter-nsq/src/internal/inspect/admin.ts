/** What operators see and do. */
import type { Broker, BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Attend from "../consume/topics.ts"
import * as Credit from "../consume/credit.ts"
import * as Http from "../http.ts"
import type { Queue } from "../names.ts"
import * as Names from "../names.ts"
import type { Node } from "../connect/nodes.ts"
import * as Nsqd from "./stats.ts"
import { target } from "../publish/sender.ts"
import type { Receipt } from "../consume/session.ts"
import * as Presence from "../connect/connectionCount.ts"
import { toDelivery } from "../consume/toDelivery.ts"

export interface Environment extends Attend.Environment {
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Longest wait for messages that are counted to come, and between two looks, in milliseconds. */
const patience = 3000
const pause = 50

/** Messages that are taken at a time. */
const window = 200

/** A topic of the queue on an nsqd that has it. */
interface Place {
  readonly node: Node
  readonly http: string
  readonly queue: Queue
}

export const make = (env: Environment): Broker.Admin => {
  const { lookup, nodes, now, settings } = env

  const topicsOf = (queue: string, operation: string): Effect.Effect<ReadonlyArray<Queue>, BrokerError.BrokerError> =>
    Effect.map(target(queue, operation, settings), (source) => [source, Names.retry(source)])

  const nodesOf = (queue: Queue): Effect.Effect<ReadonlyArray<Node>> =>
    Effect.map(settings.lookupd.length === 0 ? Effect.succeed([]) : lookup.topic(queue.topic), (found = []) => [
      ...new Set([...nodes.given, ...found.map(nodes.at)])
    ])

  const places = (name: string, operation: string): Effect.Effect<ReadonlyArray<Place>, BrokerError.BrokerError> =>
    Effect.gen(function* () {
      if (!settings.http) return yield* Http.needed(operation, name)
      const all: Array<Place> = []
      for (const queue of yield* topicsOf(name, operation)) {
        for (const node of yield* nodesOf(queue)) {
          const { http } = node.address
          if (http !== undefined) all.push({ node, http, queue })
        }
      }
      return all
    })

  const depths = ({ http, queue }: Place) => Nsqd.depths(http, queue, settings.requestTimeout)

  const total = (all: ReadonlyArray<Place>): Effect.Effect<Nsqd.Depths, BrokerError.BrokerError> =>
    Effect.map(Effect.forEach(all, depths, { concurrency: "unbounded" }), Nsqd.sum)

  /** Takes waiting messages until there are so many, or no more come; `seen` says what to do with each. */
  const take = (
    name: string,
    count: number,
    seen: (delivery: Delivery.Delivery) => void
  ): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.scoped(
      Effect.gen(function* () {
        const credit = Credit.make()
        let taken = 0
        yield* Effect.flatMap(topicsOf(name, "peek"), (topics) =>
          Attend.attend(
            {
              queue: name,
              topics,
              credit,
              presence: Presence.make(now),
              toDelivery: (frame, receipt) => ({ ...toDelivery(frame, { now: now(), due: undefined }), receipt }),
              onDelivery: (delivery) => {
                if (taken++ < count) seen(delivery)
              },
              onReconnect: () => {}
            },
            env
          )
        )
        credit.set(Math.min(count, window))
        for (let waited = 0; taken < count && waited < patience; waited += pause) yield* Effect.sleep(pause)
      })
    )

  return {
    counts: (name) =>
      Effect.gen(function* () {
        if (!settings.http) return { ready: undefined, inFlight: undefined, delayed: undefined }
        return yield* total(yield* places(name, "counts"))
      }),
    peek: (name, limit) =>
      Effect.gen(function* () {
        const { ready } = yield* total(yield* places(name, "peek"))
        const letters: Array<Delivery.Delivery> = []
        if (ready > 0) {
          yield* take(name, Math.min(limit, ready), (delivery) => letters.push({ ...delivery, receipt: undefined }))
        }
        return letters.toSorted((a, b) => a.metadata.firstPublished - b.metadata.firstPublished)
      }),
    purge: (name) =>
      Effect.gen(function* () {
        const all = yield* places(name, "purge")
        const before = yield* total(all)
        if (before.inFlight === 0) {
          yield* Effect.forEach(all, ({ http, queue }) => Nsqd.empty(http, queue, settings.requestTimeout), {
            discard: true
          })
          return before.ready + before.delayed
        }
        // To empty a channel takes away what consumers have, too: here the messages are taken one by one.
        yield* take(name, before.ready, (delivery) => finish(delivery.receipt as Receipt))
        return before.ready
      })
  }
}

const finish = (receipt: Receipt): void => {
  if (receipt.session.take(receipt)) receipt.session.answer(`FIN ${receipt.id}\n`, () => {})
}
