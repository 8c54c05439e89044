/**
 * Shows the messages of a queue, removes the chosen ones, and returns the others.
 *
 * nsqd shows a message only by delivering it, and delivers at most `--max-rdy-count` (2,500) to a connection. So a
 * browser opens one connection after another, and each holds its messages until the end: a message that is returned
 * earlier would be delivered again.
 */
import { type Broker, BrokerError } from "@requeue/core/port"
import { PageSize } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { receiptOf } from "../consume/receipt.ts"
import type * as NsqdStats from "../nsqdStats.ts"
import { gone } from "../settle/settle.ts"
import * as Holder from "./holder.ts"
import type * as Places from "./places.ts"

const losses = {
  ConnectionLost:
    "a connection was lost; nsqd requeues its messages when their lease ends, unless their topic was deleted",
  LeaseLost: "nsqd leases a message for at most --max-msg-timeout, and requeues it when the lease cannot be extended"
}

/** Opens a browser of ready messages. `counting` counts them on each nsqd. */
// Long, because its functions share the connections, counts and failure of one browser.
export const open = (
  queue: string,
  limit: number,
  counting: Effect.Effect<Places.Answers<NsqdStats.Depths>, BrokerError.BrokerError>,
  env: Holder.HolderDependencies
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const pages = PageSize.make()
    const holders: Array<Holder.Holder> = []
    /** The channels, each with the number of counted messages that were not shown yet. */
    let waiting: ReadonlyArray<{ readonly place: Places.Place; ready: number }> = []
    let isWhole = false
    /** Why other consumers may have shown messages, until `next` fails with it. */
    let failure: BrokerError.BrokerError | undefined

    const count = Effect.map(counting, ({ answers, missing }) => {
      isWhole = missing.length === 0 && answers.every(({ answer }) => answer.ready === 0)
      // Subscribing would create a missing channel.
      waiting = answers.flatMap(({ answer: { hasChannel, ready }, place }) => (hasChannel ? [{ place, ready }] : []))
    })

    const giveBack = Effect.suspend(() =>
      Effect.forEach(holders.splice(0), Holder.giveBack, { concurrency: "unbounded", discard: true })
    ).pipe(Effect.uninterruptible)

    /** Returns all messages if other consumers have some of them, or may have within `soon` milliseconds. */
    const endIfLost = (soon: number) =>
      Effect.suspend(() => {
        const time = env.elapsed() + soon
        const reason = holders.map((holder) => Holder.lossAt(holder, time)).find((each) => each !== undefined)
        if (reason === undefined) return Effect.void
        const detail = losses[reason]
        failure ??= new BrokerError.BrokerError({ broker: "nsq", operation: "browse", queue, reason, detail })
        waiting = []
        return giveBack
      })

    const check = Effect.flatMap(endIfLost(0), () => {
      const error = failure
      failure = undefined
      return error === undefined ? Effect.void : Effect.fail(error)
    })

    /** Extends the leases of a holder periodically. */
    const keep = Effect.fnUntraced(function* (holder: Holder.Holder) {
      const interval = env.messageTimeout / 3
      while (holder.session.isOpen()) {
        yield* Effect.sleep(interval)
        yield* endIfLost(interval)
        // Forked: a late answer must not delay the next extension.
        if (holder.held.size > 0) yield* Effect.forkChild(Holder.touch(holder))
      }
    })

    /** Returns a holder of this channel that has room for more messages. */
    const holderAt = Effect.fnUntraced(function* (place: Places.Place) {
      const found = holders.find(
        (holder) =>
          holder.session.node === place.node &&
          holder.session.topic.topic === place.queue.topic &&
          holder.session.isOpen() &&
          Holder.room(holder) > 0
      )
      if (found !== undefined) return found
      const holder = yield* Holder.open(queue, place, env)
      holders.push(holder)
      yield* Effect.forkIn(keep(holder), scope)
      return holder
    })

    /** Takes up to `most` of the counted messages. */
    const take = Effect.fnUntraced(function* (most: number) {
      const late = holders.find(({ arrived }) => arrived.length > 0)
      if (late !== undefined) return late.arrived.splice(0, most)
      for (const each of waiting) {
        const all = holders.reduce((sum, { held }) => sum + held.size, 0)
        const wanted = Math.min(most, each.ready, limit - all)
        if (wanted <= 0) continue
        const holder = yield* holderAt(each.place)
        const asked = Math.min(wanted, Holder.room(holder))
        const page = yield* Holder.take(holder, asked)
        yield* check
        // Other consumers have the rest.
        each.ready = page.length < asked ? 0 : each.ready - asked
        if (page.length > 0) return page
      }
      return []
    })

    yield* count
    yield* Effect.addFinalizer(() => giveBack)
    return {
      next: Effect.fnUntraced(function* (wanted) {
        yield* check
        if (waiting.every(({ ready }) => ready === 0)) yield* count
        const page = yield* take(Math.min(wanted, pages.size()))
        pages.seen(page.map(({ body }) => body.length))
        return page.map((delivery) => ({ delivery, due: undefined }))
      }),
      remove: (deliveries) => {
        const removals = Effect.forEach(
          Map.groupBy(deliveries, (delivery) => receiptOf(delivery).session),
          ([session, its]) => {
            const holder = holders.find((each) => each.session === session)
            return holder === undefined
              ? Effect.succeed(its.map((each) => gone(queue, each)))
              : Holder.remove(holder, its)
          },
          { concurrency: "unbounded" }
        )
        return Effect.map(removals, (failures) => failures.flat())
      },
      identify: (delivery) => receiptOf(delivery).name,
      browsed: () => ({ isWhole, hidden: 0 })
    } satisfies Broker.Browser
  })
