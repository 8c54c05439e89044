/** Looks at the waiting messages of a queue, page by page, and leaves them there, in their order. */
import { type Broker, BrokerError, type Delivery, LookPage } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type * as Client from "../client.ts"
import { toNative } from "../consume/toNative.ts"
import { request } from "../connect/request.ts"
import type { Declarer } from "../declare/declare.ts"
import * as Wire from "../wire.ts"
import { end, isNear, maxReplaced, recountTimeout } from "./lookEnd.ts"
import {
  byConsumer,
  byGet,
  type Dependencies,
  type Held,
  isCounted,
  read,
  type Session,
  type Take,
  until
} from "./lookSession.ts"

/**
 * The most messages that are kept while they are looked at, since they may have to be replaced, and their bytes: of all of a queue
 * that may keep its order, and where the server counts each look.
 */
const maxKept = 1000
const maxKeptBytes = 8 * 2 ** 20
const maxReplacedBytes = 64 * 2 ** 20

/** The delivery as it is shown: nobody can settle it. */
const shown = (
  { decoded: { attempts, body, headers, metadata, redelivered, unreadable }, message }: Held,
  queue: string
): Delivery.Delivery => ({
  body,
  headers,
  attempts,
  metadata,
  redelivered,
  unreadable,
  get native() {
    return toNative(Wire.propertiesOf(message), metadata.deadLetter?.queue ?? queue)
  },
  receipt: undefined
})

/** Opens a channel, on which all is given back when the scope closes. */
const connect = (
  queue: string,
  take: Take,
  env: Dependencies
): Effect.Effect<Session, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const channel = yield* env.declarer.channel("peek", queue)
    let isOpen = true
    channel.on("close", () => (isOpen = false))
    const session: Session = {
      channel,
      isOpen: () => isOpen,
      last: 0,
      isReturned: false,
      waiting: 0,
      take,
      ends: [],
      consumer: undefined,
      pages: LookPage.make(),
      shown: 0,
      kept: [],
      bytes: 0
    }
    // Whatever fails then, the server has all back when the channel closes.
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.tryPromise(() => end(session, queue, env))))
    return session
  })

/** Looks at up to `limit` messages of a queue; fails where there is none. */
export const open = (
  queue: string,
  limit: number,
  env: Dependencies
): Effect.Effect<Broker.Look, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const context = { operation: "peek", queue }
    const scope = yield* Effect.scope
    const { requestTimeout } = env
    let session = yield* connect(queue, byConsumer, env)
    let isOver = false
    const { messageCount } = yield* request(context, requestTimeout, () => session.channel.checkQueue(queue))
    const isLimited = isCounted(queue, env)
    session.waiting = messageCount
    const most = Math.min(messageCount, limit, isLimited ? maxReplaced : Number.POSITIVE_INFINITY)

    const wanted = (): number => {
      const { bytes, pages, shown } = session
      if (isLimited && bytes > maxReplacedBytes) return 0
      return Math.min(pages.size(), most - shown)
    }

    const keep = (page: ReadonlyArray<Held>): void => {
      session.shown += page.length
      const sizes = page.map(({ message }) => message.content.length)
      session.pages.seen(sizes)
      for (const size of sizes) session.bytes += size
      const found = env.found(queue)
      const all = [...session.kept, ...page]
      const keepsAll = isLimited || (session.shown <= maxKept && session.bytes <= maxKeptBytes)
      session.kept = keepsAll ? all : all.filter(({ decoded }) => isNear(decoded, found))
      // More of them could not be replaced.
      isOver ||= session.kept.length >= maxReplaced
    }

    const ask = (by: Take, count: number): Effect.Effect<ReadonlyArray<Client.Incoming>, BrokerError.BrokerError> =>
      Effect.flatMap(
        // On a slow line, a page may take longer than an answer.
        request(context, 3 * requestTimeout, () => by(session, queue, count, env)),
        (page) =>
          session.isOpen()
            ? Effect.succeed(page)
            : Effect.fail(
                new BrokerError.BrokerError({
                  broker: "rabbitmq",
                  ...context,
                  reason: "ConnectionLost",
                  detail: "the connection was lost, and the server has all messages back"
                })
              )
      )

    const another = Effect.gen(function* () {
      session = yield* Scope.provide(connect(queue, byGet, env), scope)
      session.waiting = messageCount
      return yield* ask(byGet, Math.min(session.pages.size(), most))
    })

    const next = Effect.gen(function* () {
      const count = wanted()
      if (isOver || count <= 0) return []
      const taken = yield* Effect.catchIf(
        ask(session.take, count),
        // Somebody else consumes it exclusively.
        ({ reason }) => reason === "AccessRefused" && session.shown === 0 && session.take !== byGet,
        () => another
      )
      const page = taken.length > 0 || session.take === byGet ? taken : yield* ask(byGet, count)
      isOver = page.length === 0
      const held = page.map((message): Held => ({ message, decoded: read(message, queue, env) }))
      keep(held)
      return held.map((one) => shown(one, queue))
    })
    return { next }
  })

/** Waits until a queue has taken back what was given back: a quorum queue does that in its own time. */
export const takenBack = (
  env: Pick<Dependencies, "sleep"> & { readonly declarer: Pick<Declarer, "onChannel"> },
  queue: string
): Effect.Effect<void, BrokerError.BrokerError> =>
  env.declarer.onChannel("peek", queue, (channel) =>
    until(recountTimeout, env, async () => (await channel.checkQueue(queue)).consumerCount === 0)
  )

/** Up to `limit` messages of a queue that exists, the oldest first. */
export const peek = (
  queue: string,
  limit: number,
  env: Dependencies
): Effect.Effect<ReadonlyArray<Delivery.Delivery>, BrokerError.BrokerError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { next } = yield* open(queue, limit, env)
      const seen: Array<Delivery.Delivery> = []
      for (let page = yield* next; page.length > 0; page = yield* next) seen.push(...page)
      return seen
    })
  )
