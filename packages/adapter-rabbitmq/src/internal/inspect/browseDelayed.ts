/**
 * Shows the messages in delay queues. Messages that are not removed stay there.
 *
 * A browser takes the messages of one delay queue at a time, shows them in pages, and returns them within two seconds. They keep
 * their time of expiry on every release (3.10.8, 4.0.5, 4.3.6): none is early, and a message that became due meanwhile moves on when
 * it is returned. Two groups of releases need care:
 *
 * - Before 4.0, a quorum queue does not check the time when `basic.nack` returns messages: they stay until the next message after
 *   them is due. It does when a channel closes, so the browser closes its channel instead.
 * - From 4.0 on, a queue without a delivery limit moves a message on after 20 returns, before it is due. Before 4.3 every return
 *   counts, later only those of lost connections. After a few returns, the browser replaces a message by a confirmed copy with the
 *   rest of its delay.
 */
import type { Broker, BrokerError, Metadata } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Semaphore from "effect/Semaphore"
import { identify } from "../consume/identity.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import type { Declarer } from "../declare/declare.ts"
import * as Names from "../names.ts"
import type { Publisher } from "../publish/publisher.ts"
import type { Sender } from "../publish/sender.ts"
import * as Version from "../version.ts"
import type * as Backlog from "./backlog.ts"
import * as Browser from "./browser.ts"
import { byConsumer, type Content, type Session, type Source } from "./browseSession.ts"
import * as DelayQueues from "./delayQueues.ts"
import * as Moving from "./moving.ts"

/** The broker's own. */
export interface Dependencies extends Backlog.Dependencies, Browser.Dependencies {
  readonly declarer: Pick<Declarer, "channel" | "onChannel">
  readonly sender: Pick<Sender, "sendEach">
  readonly publisher: Pick<Publisher, "submit">
  /** Two browsers of the same delay queue would each see only a part. */
  readonly lock: Semaphore.Semaphore
}

/** Moves messages out of these delay queues, with the rest of their delays. */
const mover = (env: Dependencies, places: ReadonlyArray<DelayQueues.DelayQueue>): Moving.Move =>
  Moving.make(
    {
      ...env,
      plan: (queue) => env.plan({ queue }),
      serverVersion: env.serverVersion(),
      undelivered: Names.undelivered(env.settings)
    },
    places.map(({ arguments: args, name }) => {
      return { name, arguments: args, policy: undefined, messages: undefined, unacknowledged: undefined }
    }),
    new Map()
  )

/** A message is replaced after this many returns. A policy of the server may set a limit below 20. */
const few = 4

/** The first release whose `basic.nack` returns messages in time, and that has a default delivery limit. */
const givesBack = "4.0"
const hasLimit = "4.0"

/** Milliseconds that a message may take between two levels. Meanwhile it is in neither. */
const hop = 50

/**
 * The longest time in milliseconds to hold messages of a delay queue, because due ones wait meanwhile; and the time in which to take
 * pages, which leaves time to remove messages of the last page.
 */
const holdTimeout = 2000
const takeTimeout = 1000

/** A text that a message shares with its copy for the rest of the delay, and with almost no other message. */
const lineOf = ({ attempts, firstPublished, id, notBefore }: Metadata.Metadata): string =>
  JSON.stringify([id, attempts, firstPublished, notBefore])

/** The messages that a browser has seen. A message may move from one delay queue to the next meanwhile. */
const seenOf = () => {
  const names = new Set<string>()
  const moved = new Set<string>()
  return {
    moved: ({ decoded }: Content): void => void moved.add(lineOf(decoded.metadata)),
    isNew: ({ decoded, message }: Content): boolean => {
      if (moved.has(lineOf(decoded.metadata))) return false
      const name = identify(message.content, message.properties)
      if (name === undefined) return true
      const isFirst = !names.has(name)
      names.add(name)
      return isFirst
    },
    /** Forgets all messages, so each may be shown again. */
    clear: (): void => names.clear()
  }
}

/** Messages of a delay queue. `move` replaces them, and `moved` receives the replaced ones. */
const sourceOf = (queue: string, move: Moving.Move, moved: (content: Content) => void, env: Dependencies): Source => {
  const { now, run, settings } = env
  const type = settings.queueType
  const serverVersion = env.serverVersion()
  return {
    queue,
    isDelayed: true,
    closes: type === "quorum" && !Version.isAtLeast(serverVersion, givesBack),
    isCounted: true,
    read: (message) => toDelivery(message, { type, serverVersion, keepsNotBefore: true, now }),
    isNear: ({ decoded: { returns } }) =>
      type === "quorum" && Version.isAtLeast(serverVersion, hasLimit) && returns >= few,
    copy: async (contents) => {
      const messages = contents.map(({ message }) => message)
      const errors = await run(move(messages, queue))
      contents.forEach((content, at) => {
        if (errors[at] === undefined) moved(content)
      })
      return errors
    }
  }
}

/**
 * Opens a browser on all delay queues of a queue, the longest delays first, because messages move from these to the others. After
 * the others were shown, it asks empty queues again, until none has messages left.
 *
 * Long, because all of it changes one state: the current queue and the queues that are left.
 */
export const open = (
  env: Dependencies,
  { limit, queue, retry }: Pick<Broker.BrowseOptions, "queue" | "retry" | "limit">
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { lock, management, settings } = env
    const { current, enter, leave, leaveAfter } = yield* Browser.sessions
    const plan = yield* env.plan({ queue, retry })
    const known = management === undefined ? [] : yield* Effect.orElseSucceed(management.queues, () => undefined)
    const places = DelayQueues.of(plan, settings, known).toReversed()
    const seen = seenOf()
    const move = mover(env, places)
    // Messages that the queue itself delays are invisible.
    const delaysNone =
      plan.native === undefined && !known?.some(({ delayed = 0, name }) => name === queue && delayed > 0)
    let isWhole = delaysNone && known !== undefined
    let left = places
    let full: ReadonlyArray<DelayQueues.DelayQueue> = []
    let [isLast, isDone] = [false, false]
    /** The current queue, the deadline for taking its messages, and whether it showed a message that was not seen before. */
    let [place, end, hasNew]: [DelayQueues.DelayQueue | undefined, number, boolean] = [undefined, 0, false]

    /** Finds the delay queues that have messages. */
    const find = Effect.gen(function* () {
      const counts = yield* Effect.forEach(left, ({ name }) => DelayQueues.ready(env.passive, name), {
        concurrency: DelayQueues.atOnce
      })
      full = left.filter((_, at) => counts[at]! > 0)
      left = left.filter((_, at) => counts[at] === 0)
      isDone = full.length === 0 && isLast
      isLast = full.length === 0
      if (isLast && !isDone) yield* Effect.sleep(hop)
    })

    const begin = (next: DelayQueues.DelayQueue) =>
      Effect.gen(function* () {
        yield* Effect.acquireRelease(lock.take(1), () => lock.release(1), { interruptible: true })
        ;[place, end, hasNew] = [next, env.now() + takeTimeout, false]
        return yield* Browser.open(sourceOf(next.name, move, seen.moved, env), byConsumer, env)
      }).pipe(enter, Effect.andThen(leaveAfter(holdTimeout)))

    /** Shows all messages again after a loss. */
    const restart = Effect.suspend(() => {
      if (current()?.isOpen() === true) return Effect.void
      ;[left, full, isLast] = [places, [], false]
      seen.clear()
      return leave
    })

    /** Returns the next messages of the current queue, and leaves the queue if it has none. */
    const show = (from: DelayQueues.DelayQueue, session: Session, count: number) =>
      Effect.gen(function* () {
        for (const held of session.held.values()) held.isShown = false
        const isOver = () => session.state !== "open" || env.now() >= end
        const shown = Browser.show(session, Math.min(count, limit), Number.POSITIVE_INFINITY, env)
        const contents = isOver() ? [] : yield* Effect.tapError(shown, () => restart)
        if (contents.length === 0) {
          if (isOver() && hasNew) full = [from, ...full]
          else isWhole &&= session.isWhole
          yield* leave
        }
        const page = contents.filter(
          (one) => (!from.isShared || one.message.fields.routingKey === queue) && seen.isNew(one)
        )
        hasNew ||= page.length > 0
        return page.map(({ decoded, message }): Broker.BrowsedMessage => {
          const { attempts, notBefore } = decoded.metadata
          // Only browsers return messages to a delay queue.
          const content = { message, decoded: { ...decoded, attempts: attempts + 1, redelivered: false } }
          return { delivery: Browser.toDelivery(session, content, queue), due: notBefore === 0 ? undefined : notBefore }
        })
      })

    const next = (count: number): Effect.Effect<ReadonlyArray<Broker.BrowsedMessage>, BrokerError.BrokerError> =>
      Effect.gen(function* () {
        while (!isDone) {
          const session = current()
          const [following, ...others] = full
          if (session !== undefined && place !== undefined) {
            const page = yield* show(place, session, count)
            if (page.length > 0) return page
          } else if (following === undefined) yield* find
          else {
            yield* begin(following)
            full = others
          }
        }
        return []
      })

    return {
      next,
      remove: (deliveries) => Browser.remove(deliveries, queue, env),
      identify: (delivery) => Browser.receiptOf(delivery).name,
      browsed: () => ({ isWhole: isWhole && isDone, hidden: undefined })
    }
  })
