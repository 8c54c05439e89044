/**
 * Shows the messages that wait in delay queues, and leaves those that are not removed there.
 *
 * A browser takes the messages of one delay queue at a time, shows them in pages, and gives them back within two seconds. They
 * keep the time at which they expire, on every release: none comes early, and one that was due meanwhile goes on when it is
 * given back (3.10.8, 4.0.5, 4.3.6). Two releases need care:
 *
 * - Before 4.0, a quorum queue forgets to look at the clock when messages are given back by `basic.nack`: they stay until
 *   the next message behind them is due. It does not when a channel is closed, so that this gives them back.
 * - From 4.0 on, a queue without a limit of its own hands a message on after 20 returns, before its time. Before 4.3 every
 *   return counts, from then on those of lost connections. A message that has been returned a few times is replaced by a
 *   confirmed copy with what is left of its delay.
 */
import type { Broker, BrokerError, Metadata } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as Semaphore from "effect/Semaphore"
import { request } from "../connect/request.ts"
import { identify } from "../consume/identity.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import type { Declarer } from "../declare/declare.ts"
import * as Names from "../names.ts"
import type { Publisher } from "../publish/publisher.ts"
import type { Sender } from "../publish/sender.ts"
import * as KeptBack from "../settle/keptBack.ts"
import * as Version from "../version.ts"
import type * as Backlog from "./backlog.ts"
import { takenBack } from "./browseReady.ts"
import * as DelayQueues from "./delayQueues.ts"
import * as Held from "./held.ts"
import * as Moving from "./moving.ts"
import type { Passive } from "./passive.ts"
import * as Taking from "./taking.ts"

/** The broker's own. */
export interface Dependencies extends Backlog.Dependencies {
  readonly declarer: Pick<Declarer, "channel" | "onChannel">
  readonly passive: Passive
  readonly sender: Pick<Sender, "sendEach">
  readonly publisher: Pick<Publisher, "submit">
  /** Milliseconds that an answer of the server may take. */
  readonly requestTimeout: number
  readonly serverVersion: () => string
  readonly uniqueName: () => string
  /** The start of the adapter's names. */
  readonly own: string
  /** Resolves after so many milliseconds. */
  readonly sleep: (millis: number) => Promise<void>
  /** Two browsers that have the same delay queue would each see a part. */
  readonly lock: Semaphore.Semaphore
}

/** Moves messages out of these delay queues, to what is left of their delays. */
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

/** Returns from which on a message is replaced. A server's policy may have a smaller limit than 20. */
const few = 4

/** The first release that gives a message back in time by `basic.nack`, and that has a limit of returns by itself. */
const givesBack = "4.0"
const hasLimit = "4.0"

/** Milliseconds that a message may take from one level to the next: then it is in neither. */
const hop = 50

/** The messages that have been seen by a browser: a message may move on from one delay queue to the next meanwhile. */
interface Seen {
  readonly names: Set<string>
  readonly moved: Set<string>
}

/** A text that a message and its copy with the rest of its delay have in common, and no other one as good as ever. */
const lineOf = ({ attempts, firstPublished, id, notBefore }: Metadata.Metadata): string =>
  JSON.stringify([id, attempts, firstPublished, notBefore])

const isNew = ({ decoded: { metadata }, message }: Held.Held, { moved, names }: Seen): boolean => {
  if (moved.has(lineOf(metadata))) return false
  const name = identify(message.content, message.properties)
  if (name === undefined) return true
  const isFirst = !names.has(name)
  names.add(name)
  return isFirst
}

/** A delay queue whose messages are held. */
interface Place extends Held.Holder {
  readonly queue: DelayQueues.DelayQueue
  /** Whether these are all messages that were there. */
  readonly isAll: boolean
  /** Messages that were not shown yet, the oldest first. */
  readonly left: Array<Held.Held>
  /** The delivery tags of the page that was shown last: only these can be removed. */
  readonly page: Set<number>
  /** Why the server has the messages back; `undefined` while it has not taken them. */
  readonly lost: () => BrokerError.BrokerError | undefined
}

/** Milliseconds for which shown messages are held at most, since those that become due wait meanwhile. */
const holdTimeout = 2000

/**
 * Takes the messages of a delay queue, and gives them back when the scope closes.
 *
 * Long, because it is one sequence on one channel.
 */
const hold = (
  queue: DelayQueues.DelayQueue,
  limit: number,
  { move, seen }: { readonly move: Moving.Move; readonly seen: Seen },
  env: Dependencies
): Effect.Effect<Place, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { lock, now, requestTimeout, settings, uniqueName } = env
    const { queueType } = settings
    const { name } = queue
    const context = { operation: "browse", queue: name }
    const version = env.serverVersion()
    const source = { type: queueType, serverVersion: version, keepsNotBefore: true, now } as const
    yield* Effect.acquireRelease(lock.take(1), () => lock.release(1), { interruptible: true })
    yield* Effect.addFinalizer(() => Effect.ignore(takenBack(env, name)))
    const { channel, isOpen, lost } = yield* Held.line(env, name)
    let isOver = false
    const run = () => Taking.take(channel, name, limit, env)
    const { isAll, messages } = yield* request(context, 3 * requestTimeout, run)
    const left = messages.map((message): Held.Held => ({ message, decoded: toDelivery(message, source) }))
    const held = new Map(left.map((one) => [one.message.fields.deliveryTag, one]))

    const page = new Set<number>()

    const place: Place = {
      queue,
      isAll,
      left,
      page,
      channel,
      isOpen: () => isOpen() && !isOver,
      lost: () => (isOpen() || isOver ? undefined : lost()),
      holds: (tag) => page.has(tag),
      release: (tag) => page.delete(tag) && held.delete(tag),
      unproven: new Set(),
      turn: Held.turns(),
      prove: () => KeptBack.prove(channel, name, uniqueName()).then(() => {}),
      atOnce: () => Number.POSITIVE_INFINITY
    }

    const replaceWorn = Effect.gen(function* () {
      const isLimited = queueType === "quorum" && Version.isAtLeast(version, hasLimit)
      const worn = isLimited ? [...held.values()].filter(({ decoded }) => decoded.returns >= few) : []
      if (worn.length === 0) return
      const errors = yield* move(
        worn.map(({ message }) => message),
        name
      )
      const moved = worn.filter((_, at) => errors[at] === undefined)
      for (const { decoded } of moved) seen.moved.add(lineOf(decoded.metadata))
      yield* Effect.tryPromise(() =>
        Held.acknowledge(
          place,
          moved.map(({ message }) => message.fields.deliveryTag)
        )
      )
    })

    yield* Effect.addFinalizer(() => {
      if (!isOpen()) return Effect.void
      isOver = true
      // Acknowledgements that are under way would be forgotten with the channel.
      const settled = Effect.ignore(request(context, 3 * requestTimeout, () => place.turn(async () => {})))
      return Effect.andThen(
        Effect.andThen(settled, Effect.ignore(replaceWorn)),
        Effect.sync(() => {
          if (isOpen() && (queueType === "classic" || Version.isAtLeast(version, givesBack))) channel.nackAll(true)
        })
      )
    })
    return place
  })

/**
 * Opens a browser on all delay queues of a queue, those of the longest delays first: from these messages move on to the others.
 * A queue that was empty is asked again when others have been shown, until none that has messages is left.
 *
 * Long, because all of it changes one state: the place of the moment, and those that are left.
 */
export const open = (
  env: Dependencies,
  { limit, queue, retry }: Pick<Broker.BrowseOptions, "queue" | "retry" | "limit">
): Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { management, settings } = env
    const scope = yield* Effect.scope
    const plan = yield* env.plan({ queue, retry })
    const known = management === undefined ? [] : yield* Effect.orElseSucceed(management.queues, () => undefined)
    const places = DelayQueues.of(plan, settings, known).toReversed()
    const browsing = { seen: { names: new Set<string>(), moved: new Set<string>() }, move: mover(env, places) }
    // Nobody can see what the queue itself delays.
    const delaysNone =
      plan.native === undefined && !known?.some(({ delayed = 0, name }) => name === queue && delayed > 0)
    let isWhole = delaysNone && known !== undefined
    let left = places
    let full: ReadonlyArray<DelayQueues.DelayQueue> = []
    let [isLast, isDone] = [false, false]
    let place: Place | undefined
    let end: Effect.Effect<void> = Effect.void

    const leave = Effect.suspend(() => {
      place = undefined
      return end
    })

    /** Finds the places that have messages. */
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

    const enter = (next: DelayQueues.DelayQueue) =>
      Effect.gen(function* () {
        const own = yield* Scope.fork(scope)
        end = yield* Effect.cached(Scope.close(own, Exit.void))
        place = yield* Scope.provide(hold(next, limit, browsing, env), own)
        isWhole &&= place.isAll
        yield* Effect.forkIn(Effect.delay(end, holdTimeout), scope)
      }).pipe(
        Effect.tapError(() => end),
        Effect.catchIf(
          ({ reason }) => reason === "QueueMissing",
          () => Effect.void
        )
      )

    const isMeant = ({ message }: Held.Held, { queue: { isShared } }: Place): boolean =>
      !isShared || message.fields.routingKey === queue

    /** The next messages of the place that was entered. */
    const show = (from: Place, count: number): ReadonlyArray<Broker.Delayed> => {
      const page: Array<Broker.Delayed> = []
      from.page.clear()
      while (page.length < count && from.isOpen()) {
        const one = from.left.shift()
        if (one === undefined) break
        if (!isMeant(one, from) || !isNew(one, browsing.seen)) continue
        const { metadata } = one.decoded
        // Returns of a delay queue are those of browsers.
        const decoded = { ...one.decoded, attempts: metadata.attempts + 1, redelivered: false }
        const due = metadata.notBefore === 0 ? undefined : metadata.notBefore
        from.page.add(one.message.fields.deliveryTag)
        page.push({ delivery: Held.shown(from, { ...one, decoded }, queue), due })
      }
      return page
    }

    const next = (count: number): Effect.Effect<ReadonlyArray<Broker.Delayed>, BrokerError.BrokerError> =>
      Effect.gen(function* () {
        while (!isDone) {
          const page = place === undefined ? [] : show(place, count)
          if (page.length > 0) return page
          const lost = place?.lost()
          if (lost !== undefined) {
            ;[left, full, isLast] = [places, [], false]
            browsing.seen.names.clear()
            yield* leave
            return yield* lost
          }
          // Its time was over.
          if (place !== undefined && place.left.length > 0) full = [place.queue, ...full]
          yield* leave
          const [following, ...others] = full
          if (following === undefined) yield* find
          else {
            yield* enter(following)
            full = others
          }
        }
        return []
      })

    return {
      next,
      remove: (deliveries) => Effect.suspend(() => Held.remove(place, deliveries, queue, 3 * env.requestTimeout)),
      identify: (delivery) => Held.receiptOf(delivery).name,
      browsed: () => ({ isWhole: isWhole && isDone, hidden: undefined })
    }
  })
