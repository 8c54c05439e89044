/** Shows the waiting messages of a queue, page by page, and leaves those that are not removed there, in their order. */
import { type Broker, type BrokerError, LookPage } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { request } from "../connect/request.ts"
import type { Declarer } from "../declare/declare.ts"
import * as NameRules from "../nameRules.ts"
import { end, isNear, maxReplaced, recountTimeout } from "./browseEnd.ts"
import {
  atOnce,
  byConsumer,
  byGet,
  type Dependencies,
  isCounted,
  prove,
  read,
  type Session,
  type Take,
  until
} from "./browseSession.ts"
import * as Held from "./held.ts"

/**
 * The most messages that are kept while they are held, since they may have to be replaced, and their bytes: of all of a queue
 * that may keep its order, and where the server counts each return.
 */
const maxKept = 1000
const maxKeptBytes = 8 * 2 ** 20
const maxReplacedBytes = 64 * 2 ** 20

const bytesOf = ({ held }: Session): number => [...held.values()].reduce((sum, size) => sum + size, 0)

/** Opens a channel, on which all is given back when the scope closes. */
const connect = (
  queue: string,
  take: Take,
  env: Dependencies
): Effect.Effect<Session, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const context = { operation: "browse", queue }
    const line = yield* Held.line(env, queue)
    const held = new Map<number, number>()
    const kept = new Map<number, Held.Held>()
    const { messageCount } = yield* request(context, env.requestTimeout, () => line.channel.checkQueue(queue))
    const session: Session = {
      ...line,
      queue,
      last: 0,
      isReturned: false,
      waiting: messageCount,
      take,
      ends: [],
      isLeft: false,
      pages: LookPage.make(),
      taken: [],
      held,
      kept,
      holds: (tag) => held.has(tag),
      release: (tag) => {
        kept.delete(tag)
        return held.delete(tag)
      },
      unproven: new Set(),
      turn: Held.turns(),
      prove: () => prove(session, env.uniqueName),
      atOnce: () => atOnce(session)
    }
    const finish = (): Promise<void> => {
      session.isLeft = true
      return session.turn(() => {
        session.isLeft = false
        return end(session, env)
      })
    }
    // Whatever fails then, the server has all back when the channel closes.
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.tryPromise(finish)))
    return session
  })

/** Messages that are held, and were shown. */
const shownOf = ({ held, taken }: Session): number => held.size - taken.length

/** Messages that may be shown as well. */
const roomOf = (session: Session, limit: number, env: Dependencies): number => {
  const isLimited = isCounted(session.queue, env)
  // More of them could not be replaced.
  const isFull = session.kept.size >= maxReplaced || (isLimited && bytesOf(session) > maxReplacedBytes)
  return isFull ? 0 : Math.min(limit, isLimited ? maxReplaced : Number.POSITIVE_INFINITY) - shownOf(session)
}

/** Takes a page; returns whether there is no message left to take. */
const takePage = async (session: Session, most: number, env: Dependencies): Promise<boolean> => {
  const { channel, held, queue, taken } = session
  if (taken.length > 0) return false
  const ready = async () => (await channel.checkQueue(queue)).messageCount
  const count = await ready()
  const wanted = Math.min(most, session.pages.size(), count)
  if (wanted === 0) return count === 0
  await session.take(session, wanted, env)
  if (taken.length === 0 && held.size === 0 && session.take !== byGet) {
    // Another consumer may be the only one who gets any.
    await byGet(session, wanted)
    if (taken.length > 0) session.take = byGet
  }
  return taken.length === 0 && (await ready()) === 0
}

/** Remembers what the end of the session needs of messages that are shown. */
const keep = (session: Session, page: ReadonlyArray<Held.Held>, env: Dependencies): void => {
  const { held, kept, pages, queue } = session
  pages.seen(page.map(({ message }) => message.content.length))
  for (const one of page) kept.set(one.message.fields.deliveryTag, one)
  if (isCounted(queue, env) || (held.size <= maxKept && bytesOf(session) <= maxKeptBytes)) return
  const found = env.found(queue)
  for (const [tag, { decoded }] of kept) if (!isNear(decoded, found)) kept.delete(tag)
}

/**
 * Opens a browser on the messages of a queue that are ready.
 *
 * Long, because all of it changes one state: the session of the moment.
 */
export const open = (
  { limit, queue }: Pick<Broker.BrowseOptions, "queue" | "limit">,
  env: Dependencies
): Effect.Effect<Broker.Browser, never, Scope.Scope> =>
  Effect.gen(function* () {
    const context = { operation: "browse", queue }
    const scope = yield* Effect.scope
    const names = Held.names()
    let session: Session | undefined
    let close: Effect.Effect<void> = Effect.void
    let take: Take = byConsumer
    let opening = 0
    let isWhole = false

    const leave = Effect.suspend(() => {
      session = undefined
      return close
    })

    const opened = Effect.gen(function* () {
      if (session?.isOpen() === true) return session
      const before = session
      yield* leave
      if (before !== undefined && shownOf(before) > 0) return yield* before.lost()
      const own = yield* Scope.fork(scope)
      close = Scope.close(own, Exit.void)
      opening++
      return (session = yield* Scope.provide(connect(queue, take, env), own))
    })

    const page = (count: number): Effect.Effect<ReadonlyArray<Broker.Delayed>, BrokerError.BrokerError> =>
      Effect.gen(function* () {
        const one = yield* opened
        const most = Math.min(count, roomOf(one, limit, env))
        // On a slow line, a page may take longer than an answer.
        const run = () => one.turn(() => takePage(one, Math.max(0, most), env))
        isWhole = yield* request(context, 3 * env.requestTimeout, run)
        if (!one.isOpen()) return yield* one.lost()
        const held = one.taken.splice(0, Math.max(0, most)).map((message) => read(message, queue, env))
        keep(one, held, env)
        return held.map((each) => {
          const delivery = Held.shown(one, each, queue)
          const { name } = Held.receiptOf(delivery)
          if (name !== undefined) names.shown(name, opening, !each.decoded.redelivered)
          return { delivery, due: undefined }
        })
      })

    const missing = Effect.sync(() => {
      isWhole = true
      return []
    })

    const orOtherwise =
      (count: number) =>
      (error: BrokerError.BrokerError): ReturnType<typeof page> => {
        const isLost = session?.isOpen() === false
        if (isLost && shownOf(session!) > 0) return Effect.andThen(leave, Effect.fail(session!.lost(error)))
        if (session !== undefined && !isLost) return Effect.fail(error)
        if (error.reason === "QueueMissing") return Effect.andThen(leave, missing)
        // Another consumer may have it exclusively.
        const isAnotherWay = error.reason === "AccessRefused" && take === byConsumer
        take = isAnotherWay ? byGet : byConsumer
        return Effect.andThen(leave, isAnotherWay ? pageOf(count) : Effect.fail(error))
      }

    const pageOf = (count: number) => page(count).pipe(Effect.catch(orOtherwise(count)))

    return {
      next: (count) => (NameRules.isQueue(queue) ? pageOf(count) : missing),
      remove: (deliveries) => Effect.suspend(() => Held.remove(session, deliveries, queue, 3 * env.requestTimeout)),
      identify: (delivery) => {
        const { name } = Held.receiptOf(delivery)
        return name === undefined || names.isRepeated(name) ? undefined : name
      },
      browsed: () => ({ isWhole, hidden: undefined })
    }
  })

/** Waits until a queue has taken back what was given back: a quorum queue does that in its own time. */
export const takenBack = (
  env: Pick<Dependencies, "sleep"> & { readonly declarer: Pick<Declarer, "onChannel"> },
  queue: string
): Effect.Effect<void, BrokerError.BrokerError> =>
  env.declarer.onChannel("browse", queue, (channel) =>
    until(recountTimeout, env, async () => (await channel.checkQueue(queue)).consumerCount === 0)
  )
