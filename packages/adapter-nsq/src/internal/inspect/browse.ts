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

interface BrowseDependencies extends Holder.HolderDependencies {
  /** Asks each nsqd how many messages wait in the queue's channels. */
  readonly count: Effect.Effect<Places.Answers<NsqdStats.Depths>, BrokerError.BrokerError>
}

interface Browsing extends Pick<Broker.BrowseOptions, "limit" | "queue"> {
  readonly env: BrowseDependencies
  readonly pages: LookPage.LookPage
  readonly holders: Array<Holder.Holder>
  /** The channels, each with the messages that were counted and not shown. */
  waiting: ReadonlyArray<{ readonly place: Places.Place; ready: number }>
  isWhole: boolean
  /** Why others may have messages that were shown; `next` has not failed with it yet. */
  failure: BrokerError.BrokerError | undefined
}

const lost = "a connection was lost; nsqd has its messages back when their lease ends, unless their topic was deleted"
const lapsed =
  "nsqd lends a message for its --max-msg-timeout at most, and takes it back when it cannot extend its lease"

const count = (browsing: Browsing) =>
  Effect.map(browsing.env.count, ({ answers, missing }) => {
    browsing.isWhole = missing.length === 0 && answers.every(({ answer }) => answer.ready === 0)
    // To subscribe to a channel makes it.
    browsing.waiting = answers.flatMap(({ answer: { hasChannel, ready }, place }) =>
      hasChannel ? [{ place, ready }] : []
    )
  })

const giveBack = ({ holders }: Browsing) =>
  Effect.suspend(() =>
    Effect.forEach(holders.splice(0), Holder.giveBack, { concurrency: "unbounded", discard: true })
  ).pipe(Effect.uninterruptible)

/** Returns all messages where others have some of them, or may have them in so many milliseconds. */
const endIfLost = (browsing: Browsing, soon: number) =>
  Effect.suspend(() => {
    const { env, holders, queue } = browsing
    const isLost = holders.some(({ connection, held }) => !connection.isOpen() && held.size > 0)
    const end = env.elapsed() + soon
    if (!isLost && !holders.some((holder) => holder.isLapsed || end >= Holder.holdsUntil(holder))) return Effect.void
    browsing.failure ??= new BrokerError.BrokerError({
      broker: "nsq",
      operation: "browse",
      queue,
      ...(isLost ? { reason: "ConnectionLost", detail: lost } : { reason: "LeaseLost", detail: lapsed })
    })
    browsing.waiting = []
    return giveBack(browsing)
  })

/** Fails where others may have messages that were shown. */
const check = (browsing: Browsing) =>
  Effect.andThen(
    endIfLost(browsing, 0),
    Effect.suspend(() => {
      const { failure } = browsing
      browsing.failure = undefined
      return failure === undefined ? Effect.void : Effect.fail(failure)
    })
  )

/** Extends all leases, again and again. */
const keep = (browsing: Browsing) => {
  const interval = browsing.env.messageTimeout / 3
  // One nsqd that does not answer holds up no others.
  const touch = Effect.suspend(() =>
    Effect.forkChild(Effect.forEach(browsing.holders, Holder.touch, { concurrency: "unbounded", discard: true }))
  )
  return Effect.sleep(interval).pipe(
    Effect.andThen(endIfLost(browsing, interval)),
    Effect.andThen(touch),
    Effect.forever
  )
}

/** A connection to this channel that may hold more messages. */
const holderAt = ({ env, holders, queue }: Browsing, place: Places.Place) =>
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

/** Takes up to so many of the messages that were counted. */
const take = (browsing: Browsing, most: number) =>
  Effect.gen(function* () {
    const { holders, limit, waiting } = browsing
    const late = holders.find(({ arrived }) => arrived.length > 0)
    if (late !== undefined) return yield* Holder.take(late, Math.min(most, late.arrived.length))
    for (const each of waiting) {
      const all = holders.reduce((sum, { held }) => sum + held.size, 0)
      const wanted = Math.min(most, each.ready, limit - all)
      if (wanted <= 0) continue
      const holder = yield* holderAt(browsing, each.place)
      const asked = Math.min(wanted, Holder.room(holder))
      const page = yield* Holder.take(holder, asked)
      yield* check(browsing)
      // Others have the rest of it.
      each.ready = page.length < asked ? 0 : each.ready - asked
      if (page.length > 0) return page
    }
    return []
  })

/** Opens a browser of messages that are ready. */
export const open = (
  options: Pick<Broker.BrowseOptions, "limit" | "queue">,
  env: BrowseDependencies
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const browsing: Browsing = {
      ...options,
      env,
      pages: LookPage.make(),
      holders: [],
      waiting: [],
      isWhole: false,
      failure: undefined
    }
    const { pages } = browsing
    yield* count(browsing)
    yield* Effect.addFinalizer(() => giveBack(browsing))
    yield* Effect.forkScoped(keep(browsing))
    return {
      next: (wanted) =>
        Effect.gen(function* () {
          yield* check(browsing)
          const most = Math.min(wanted, pages.size())
          const first = yield* take(browsing, most)
          const page = first.length > 0 ? first : yield* Effect.andThen(count(browsing), take(browsing, most))
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
      browsed: () => ({ isWhole: browsing.isWhole, hidden: 0 })
    }
  })
