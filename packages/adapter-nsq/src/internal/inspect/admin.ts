/** Counts, looks at and removes the messages of a queue, over all nsqd and both of its topics. */
import type { Backlog, Broker, BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as ConnectionCount from "../connect/connectionCount.ts"
import * as Credit from "../consume/credit.ts"
import { receiptOf, type SettlingSession } from "../consume/receipt.ts"
import * as Sessions from "../consume/sessions.ts"
import { type Frame, toDelivery } from "../consume/toDelivery.ts"
import * as Names from "../names.ts"
import * as NsqdHttp from "../nsqdHttp.ts"
import * as NsqdQuestions from "../nsqdQuestions.ts"
import * as NsqdStats from "../nsqdStats.ts"
import * as Look from "./look.ts"
import * as Places from "./places.ts"

interface AdminDependencies extends Places.PlacesDependencies, Sessions.SessionsDependencies {
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** How long `purge` waits for the next of the messages that were counted, in milliseconds. */
const silence = 3000

/** How long it waits before it looks again, in milliseconds. */
const lookAgain = 50

/** Messages that `purge` takes at a time. */
const credits = 200

interface Receiving {
  /** The places that are read. */
  readonly places: ReadonlyArray<Places.Place>
  /** The most messages to receive. */
  readonly count: number
  /** Messages that may be unsettled at a time. */
  readonly credits: number
  /** Called for each. Those that it does not settle are given back. */
  readonly onDelivery: (delivery: Delivery.Delivery) => void
}

/** Receives messages until there are enough, or no more arrive; answers how many. */
const receive = (
  dependencies: AdminDependencies,
  queue: string,
  { count, credits, onDelivery, places }: Receiving
): Effect.Effect<number> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { now } = dependencies
      const credit = Credit.make(dependencies.elapsed)
      let received = 0
      const subscriber = {
        queue,
        credit,
        connectionCount: ConnectionCount.make(now),
        decode: (frame: Frame, { node: { clock } }: SettlingSession) =>
          toDelivery(frame, { now: now(), nsqdNow: clock.now(now(), dependencies.elapsed()), due: undefined }),
        onDelivery: (delivery: Delivery.Delivery) => {
          if (received < count) onDelivery(delivery)
          received++
        },
        onReconnect: () => {}
      }
      // No topic is made where there is none.
      for (const place of places) yield* Sessions.open(place.node, place.queue, subscriber, dependencies, () => true)
      credit.set(credits)
      let last = 0
      for (let waited = 0; received < count && waited < silence; waited += lookAgain) {
        yield* Effect.sleep(lookAgain)
        credit.tick()
        if (received > last) waited = 0
        last = received
      }
      return Math.min(received, count)
    })
  )

const finish = (delivery: Delivery.Delivery): void => {
  const receipt = receiptOf(delivery)
  if (receipt.session.take(receipt)) receipt.session.answer(`FIN ${receipt.id}\n`, () => {})
}

/** The numbers of a queue as nsqd tells them, and why not the others. https://nsq.io/components/nsqd.html#get-stats */
const told = ({ clients, delayed, inFlight, ready }: NsqdStats.Depths): Backlog.Backlog => ({
  ready,
  inFlight,
  delayed,
  backoff: delayed === 0 ? [] : undefined,
  undelivered: 0,
  oldest: ready === 0 ? 0 : undefined,
  consumers: clients,
  remarks: {
    ...(delayed === 0 ? {} : { backoff: "nsqd tells how many messages are deferred, and not until when" }),
    ...(ready === 0 ? {} : { oldest: "nsqd tells no age of messages" })
  }
})

const withoutHttp = "nsqd tells its numbers over HTTP, which http: false has turned off"

/** All numbers that are asked over HTTP. */
const byHttp: ReadonlyArray<Backlog.Field> = ["ready", "inFlight", "delayed", "backoff", "oldest", "consumers"]

const silent: Backlog.Backlog = {
  ready: undefined,
  inFlight: undefined,
  delayed: undefined,
  backoff: undefined,
  undelivered: 0,
  oldest: undefined,
  consumers: undefined,
  remarks: Object.fromEntries(byHttp.map((field) => [field, withoutHttp]))
}

/** The places that have some. */
const placesWith = (
  { answers }: Pick<Places.Answers<NsqdStats.Depths>, "answers">,
  some: (depths: NsqdStats.Depths) => number
): ReadonlyArray<Places.Place> => answers.flatMap(({ answer, place }) => (some(answer) > 0 ? [place] : []))

const numbersOf = ({ delayed, inFlight, ready }: NsqdStats.Depths) => ({ ready, inFlight, delayed })

const stateOf = ({ isMissing, isPaused }: NsqdStats.Depths, missing: ReadonlyArray<BrokerError.BrokerError>) => ({
  ...(isPaused ? { isPaused } : {}),
  // An nsqd that does not answer may have it.
  ...(isMissing && missing.length === 0 ? { isMissing } : {}),
  ...(missing.length === 0 ? {} : { missing })
})

export const make = (dependencies: AdminDependencies): Broker.Admin => {
  const { http: usesHttp, requestTimeout } = dependencies.settings
  const depths = NsqdQuestions.make(requestTimeout)

  /** The numbers of each place, and their sums. */
  const count = (name: string, operation: string) =>
    Effect.gen(function* () {
      const all = yield* Places.of(dependencies, name, operation)
      const { answers, missing } = yield* Places.ask(all, ({ http, queue }) => depths(http, queue))
      return { answers, missing, total: NsqdStats.sum(answers.map(({ answer }) => answer)) }
    })

  const look = (name: string, limit: number) =>
    Effect.gen(function* () {
      const { answers } = yield* count(name, "peek")
      const waiting = answers.map(({ answer, place }) => ({ place, ready: answer.ready }))
      return yield* Look.open(name, limit, waiting, dependencies)
    })

  return {
    counts: (name) =>
      Effect.gen(function* () {
        if (!usesHttp) return { ready: undefined, inFlight: undefined, delayed: undefined }
        const { missing, total } = yield* count(name, "counts")
        return { ...numbersOf(total), ...stateOf(total, missing) }
      }),
    backlog: ({ queue }) =>
      Effect.gen(function* () {
        if (!usesHttp) return silent
        const { missing, total } = yield* count(queue, "counts")
        return { ...told(total), ...stateOf(total, missing) }
      }),
    peek: (name, limit) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { next } = yield* look(name, limit)
          const letters: Array<Delivery.Delivery> = []
          for (let page = yield* next; page.length > 0; page = yield* next) letters.push(...page)
          return letters.toSorted((a, b) => a.metadata.firstPublished - b.metadata.firstPublished)
        })
      ),
    look,
    names: Effect.gen(function* () {
      const { nsqd: found = [] } = dependencies.settings.lookupd.length === 0 ? {} : yield* dependencies.lookup.all
      const nodes = new Set([...dependencies.nodes.given, ...found.map(dependencies.nodes.at)])
      const all = yield* Effect.forEach(nodes, ({ address }) =>
        address.http === undefined ? Effect.succeed([]) : NsqdStats.queues(address.http, requestTimeout)
      )
      return [...new Set(all.flat().flatMap((queue) => Names.told(queue, dependencies.settings.channel)))]
    }),
    purge: (name) =>
      Effect.gen(function* () {
        const counted = yield* count(name, "purge")
        const { total } = counted
        if (total.inFlight === 0) {
          const places = placesWith(counted, ({ delayed, ready }) => ready + delayed)
          yield* Effect.forEach(places, ({ http, queue }) => NsqdHttp.empty(http, queue, requestTimeout), {
            discard: true
          })
          return total.ready + total.delayed
        }
        const places = placesWith(counted, ({ ready }) => ready)
        // To empty a channel would take messages away from consumers that have them: they are received one by one.
        return yield* receive(dependencies, name, { places, count: total.ready, credits, onDelivery: finish })
      })
  }
}
