/** Counts, looks at and removes the messages of a queue, over all nsqd and both of its topics. */
import type { Broker, BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as ConnectionCount from "../connect/connectionCount.ts"
import type { Node } from "../connect/nodes.ts"
import * as Credit from "../consume/credit.ts"
import { receiptOf } from "../consume/receipt.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import * as Topics from "../consume/topics.ts"
import * as Http from "../http.ts"
import type { Queue } from "../names.ts"
import * as Names from "../names.ts"
import * as NsqdHttp from "../nsqdHttp.ts"
import { target } from "../publish/sender.ts"

interface AdminDependencies extends Topics.TopicsDependencies {
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** How long `peek` and `purge` wait for messages that were counted, in milliseconds. */
const peekTimeout = 3000

/** How long they wait before they look again, in milliseconds. */
const lookAgain = 50

/** Messages that they take at a time. */
const credits = 200

/** A channel of the queue on one nsqd, whose HTTP interface is at `http`. */
interface Place {
  readonly http: string
  readonly queue: Queue
}

const topicsOf = (
  { settings }: AdminDependencies,
  queue: string,
  operation: string
): Effect.Effect<ReadonlyArray<Queue>, BrokerError.BrokerError> =>
  Effect.map(target(queue, operation, settings), (source) => [source, Names.retry(source)])

const nodesOf = (
  { lookup, nodes, settings }: AdminDependencies,
  { topic }: Queue
): Effect.Effect<ReadonlyArray<Node>> =>
  Effect.map(settings.lookupd.length === 0 ? Effect.succeed([]) : lookup.topic(topic), (found = []) => [
    ...new Set([...nodes.given, ...found.map(nodes.at)])
  ])

const placesOf = (
  dependencies: AdminDependencies,
  name: string,
  operation: string
): Effect.Effect<ReadonlyArray<Place>, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    if (!dependencies.settings.http) return yield* Http.needed(operation, name)
    const all: Array<Place> = []
    for (const queue of yield* topicsOf(dependencies, name, operation)) {
      for (const { address } of yield* nodesOf(dependencies, queue)) {
        if (address.http !== undefined) all.push({ http: address.http, queue })
      }
    }
    return all
  })

/** Receives up to so many messages, fewer when no more arrive, and gives back those that `onDelivery` does not settle. */
const receive = (
  dependencies: AdminDependencies,
  queue: string,
  count: number,
  onDelivery: (delivery: Delivery.Delivery) => void
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { now } = dependencies
      const credit = Credit.make()
      let received = 0
      yield* Topics.open(
        yield* topicsOf(dependencies, queue, "peek"),
        {
          queue,
          credit,
          connectionCount: ConnectionCount.make(now),
          decode: (frame) => toDelivery(frame, { now: now(), due: undefined }),
          onDelivery: (delivery) => {
            if (received++ < count) onDelivery(delivery)
          },
          onReconnect: () => {}
        },
        dependencies
      )
      credit.set(Math.min(count, credits))
      for (let waited = 0; received < count && waited < peekTimeout; waited += lookAgain) {
        yield* Effect.sleep(lookAgain)
      }
    })
  )

const finish = (delivery: Delivery.Delivery): void => {
  const receipt = receiptOf(delivery)
  if (receipt.session.take(receipt)) receipt.session.answer(`FIN ${receipt.id}\n`, () => {})
}

export const make = (dependencies: AdminDependencies): Broker.Admin => {
  const { http: usesHttp, requestTimeout } = dependencies.settings

  const total = (all: ReadonlyArray<Place>): Effect.Effect<NsqdHttp.Depths, BrokerError.BrokerError> =>
    Effect.map(
      Effect.forEach(all, ({ http, queue }) => NsqdHttp.depths(http, queue, requestTimeout), {
        concurrency: "unbounded"
      }),
      NsqdHttp.sum
    )

  return {
    counts: (name) =>
      Effect.gen(function* () {
        if (!usesHttp) return { ready: undefined, inFlight: undefined, delayed: undefined }
        return yield* total(yield* placesOf(dependencies, name, "counts"))
      }),
    peek: (name, limit) =>
      Effect.gen(function* () {
        const { ready } = yield* total(yield* placesOf(dependencies, name, "peek"))
        const letters: Array<Delivery.Delivery> = []
        if (ready > 0) {
          const keep = (delivery: Delivery.Delivery) => letters.push({ ...delivery, receipt: undefined })
          yield* receive(dependencies, name, Math.min(limit, ready), keep)
        }
        return letters.toSorted((a, b) => a.metadata.firstPublished - b.metadata.firstPublished)
      }),
    purge: (name) =>
      Effect.gen(function* () {
        const all = yield* placesOf(dependencies, name, "purge")
        const before = yield* total(all)
        if (before.inFlight === 0) {
          yield* Effect.forEach(all, ({ http, queue }) => NsqdHttp.empty(http, queue, requestTimeout), {
            discard: true
          })
          return before.ready + before.delayed
        }
        // To empty a channel would take messages away from consumers that have them: they are received one by one.
        yield* receive(dependencies, name, before.ready, finish)
        return before.ready
      })
  }
}
