/**
 * Shows the messages of a queue, removes those that it is told to, and returns the others.
 *
 * nsqd shows a message only by handing it out, and hands out `--max-rdy-count` of them (2,500) to a connection at most. So a
 * browser opens one connection after the other, and each holds what it has shown until the end: a message that is returned
 * before would come again. Only the ids are kept.
 */
import { type Broker, BrokerError, LookPage } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { nameOf, receiptOf } from "../consume/receipt.ts"
import type * as NsqdStats from "../nsqdStats.ts"
import * as Holder from "./holder.ts"
import type * as Places from "./places.ts"

/** Messages that wait in one channel. */
interface Waiting {
  readonly place: Places.Place
  ready: number
}

const lost = "a connection was lost; nsqd has its messages back when their lease ends, unless their topic was deleted"
const lapsed = "nsqd lends a message for its --max-msg-timeout at most, and the first ones were held for nearly as long"

/** Opens a browser. `count` asks each nsqd how many messages wait in the queue's channels. */
export const open = (
  { limit, queue }: Pick<Broker.BrowseOptions, "limit" | "queue">,
  count: Effect.Effect<Places.Answers<NsqdStats.Depths>, BrokerError.BrokerError>,
  env: Holder.HolderDependencies
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { elapsed, messageTimeout } = env
    /** Milliseconds between two extensions of all leases. */
    const interval = messageTimeout / 3
    const pages = LookPage.make()
    const holders: Array<Holder.Holder> = []
    let waiting: ReadonlyArray<Waiting> = []
    let isWhole = false
    /** Why messages that were shown may be with others by now; `next` has not failed with it yet. */
    let failure: BrokerError.BrokerError | undefined

    const ask = Effect.map(count, ({ answers, missing }) => {
      isWhole = missing.length === 0 && answers.every(({ answer }) => answer.ready === 0)
      // To subscribe to a channel makes it.
      waiting = answers.flatMap(({ answer, place }) => (answer.hasChannel ? [{ place, ready: answer.ready }] : []))
    })
    const giveBack = Effect.suspend(() =>
      Effect.forEach(holders.splice(0), Holder.giveBack, { concurrency: "unbounded", discard: true })
    ).pipe(Effect.uninterruptible)
    const end = (reason: BrokerError.Reason, detail: string) =>
      Effect.suspend(() => {
        failure ??= new BrokerError.BrokerError({ broker: "nsq", operation: "browse", queue, reason, detail })
        waiting = []
        return giveBack
      })

    /** Ends the opening when messages that were shown are with others, or may be in so many milliseconds. */
    const endIfLost = (soon: number) =>
      Effect.suspend(() => {
        if (holders.some(({ connection, held }) => !connection.isOpen() && held.size > 0)) {
          return end("ConnectionLost", lost)
        }
        const isLapsing = (holder: Holder.Holder) => holder.isLapsed || elapsed() + soon >= Holder.holdsUntil(holder)
        return holders.some(isLapsing) ? end("LeaseLost", lapsed) : Effect.void
      })
    const check = Effect.andThen(
      endIfLost(0),
      Effect.suspend(() => {
        const error = failure
        failure = undefined
        return error === undefined ? Effect.void : Effect.fail(error)
      })
    )
    const keep = Effect.andThen(
      endIfLost(interval),
      Effect.sync(() => holders.forEach(Holder.touch))
    )

    const holderAt = (place: Places.Place) =>
      Effect.suspend(() => {
        const found = holders.find(
          (holder) =>
            holder.node === place.node &&
            holder.topic.topic === place.queue.topic &&
            holder.connection.isOpen() &&
            Holder.room(holder) > 0
        )
        if (found !== undefined) return Effect.succeed(found)
        return Effect.tap(Holder.open(queue, place, env), (holder) => Effect.sync(() => holders.push(holder)))
      })

    const take = (most: number) =>
      Effect.gen(function* () {
        const late = holders.find(({ arrived }) => arrived.length > 0)
        if (late !== undefined) return yield* Holder.take(late, Math.min(most, late.arrived.length))
        for (const each of waiting) {
          const all = holders.reduce((sum, { held }) => sum + held.size, 0)
          const wanted = Math.min(most, each.ready, limit - all)
          if (wanted <= 0) continue
          const holder = yield* holderAt(each.place)
          const count = Math.min(wanted, Holder.room(holder))
          const page = yield* Holder.take(holder, count)
          yield* check
          // Others have the rest of it.
          each.ready = page.length < count ? 0 : each.ready - count
          if (page.length > 0) return page
        }
        return []
      })

    yield* Effect.addFinalizer(() => giveBack)
    yield* ask
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(interval), keep)))
    return {
      next: (count) =>
        Effect.gen(function* () {
          yield* check
          const most = Math.min(count, pages.size())
          const first = yield* take(most)
          const page = first.length > 0 ? first : yield* Effect.andThen(ask, take(most))
          pages.seen(page.map(({ body }) => body.length))
          return page.map((delivery) => ({ delivery, due: undefined }))
        }),
      remove: (deliveries) =>
        Effect.map(
          Effect.forEach(Map.groupBy(deliveries, Holder.of), ([holder, its]) => Holder.remove(holder, its), {
            concurrency: "unbounded"
          }),
          (failures) => failures.flat()
        ),
      identify: (delivery) => nameOf(receiptOf(delivery)),
      browsed: () => ({ isWhole, hidden: 0 })
    }
  })
