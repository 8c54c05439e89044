/** Shared by browsers of ready and of delayed messages: consecutive sessions, their pages, and removals. */
import { type Broker, BrokerError, type Delivery } from "@requeue/core/port"
import { PageSize } from "@requeue/kit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { request } from "../connect/request.ts"
import { identify } from "../consume/identity.ts"
import * as Originals from "../consume/originals.ts"
import { toNative } from "../consume/toNative.ts"
import { toBrokerError } from "../toBrokerError.ts"
import * as Wire from "../wire.ts"
import { end, maxReplaced, takenBack } from "./browseEnd.ts"
import * as Session from "./browseSession.ts"
import type { Passive } from "./passive.ts"

/** The broker's own. */
export interface Dependencies extends Session.Dependencies {
  readonly passive: Passive
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
}

/** Opens a channel that holds messages until the scope closes, and then returns them. */
export const open = (
  source: Session.Source,
  way: Session.Way,
  env: Dependencies
): Effect.Effect<Session.Session, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { queue } = source
    const context = { operation: "browse", queue }
    const ended = (run: () => Promise<void>) => Effect.addFinalizer(() => Effect.ignore(Effect.tryPromise(run)))
    if (source.closes) yield* ended(() => takenBack({ source }, 0, env, () => env.run(env.passive(queue))))
    const channel = yield* env.declarer.channel("browse", queue)
    let isOpen = true
    let words: unknown = "channel closed"
    let last: Promise<unknown> = Promise.resolve()
    channel.on("error", (error) => (words = error))
    channel.on("close", () => (isOpen = false))
    const session: Session.Session = {
      source,
      channel,
      isOpen: () => isOpen,
      lost: () => {
        const { broker, detail, operation, reason, remedy } = toBrokerError(words, context)
        // If the queue was deleted, there is nothing to return.
        const isKnown = ["ConnectionLost", "LeaseLost", "QueueMissing"].includes(reason)
        const told = isKnown ? reason : "LeaseLost"
        return new BrokerError.BrokerError({ broker, operation, queue, reason: told, detail, remedy })
      },
      turn: (run) => {
        const next = last.then(run, run)
        last = next
        return next
      },
      state: "open",
      way,
      held: new Map(),
      bytes: 0,
      taken: [],
      unproven: new Set(),
      isReturned: false,
      consumers: 0,
      isForgetting: false,
      pages: PageSize.make(),
      isWhole: false
    }
    yield* ended(() => {
      session.state = "leaving"
      return session.turn(() => end(session, env))
    })
    return session
  })

/** The consecutive sessions of a browser. There is none at first; the last one ends with the scope. */
export const sessions = Effect.map(Effect.scope, (scope) => {
  let session: Session.Session | undefined
  let close: Effect.Effect<void> = Effect.void
  const leave = Effect.suspend(() => {
    session = undefined
    return close
  })
  return {
    current: () => session,
    leave,
    enter: (opened: ReturnType<typeof open>) =>
      Effect.gen(function* () {
        yield* leave
        const own = yield* Scope.fork(scope)
        close = yield* Effect.cached(Effect.uninterruptible(Scope.close(own, Exit.void)))
        session = yield* Effect.onError(Scope.provide(opened, own), () => close)
        return session
      }),
    /** Ends the current session after this many milliseconds in any case. */
    leaveAfter: (millis: number) =>
      Effect.suspend(() => Effect.asVoid(Effect.forkIn(Effect.delay(close, millis), scope)))
  }
})

/** The most held messages to keep in memory for replacing them, and their bytes: to keep a queue's order, and if returns count. */
const maxKept = 1000
const maxKeptBytes = 8 * 2 ** 20
const maxReplacedBytes = 64 * 2 ** 20

/** The number of delayed messages to take at a time. */
const portion = 1000

/** The held messages that were shown. */
export const shownOf = ({ held, taken }: Session.Session): number => held.size - taken.length

/** How many further messages may be shown. More could not be replaced. */
const roomOf = ({ bytes, held, source: { isCounted }, taken }: Session.Session, limit: number): number => {
  const most = isCounted ? Math.min(limit, maxReplaced) : limit
  return bytes > maxReplacedBytes ? 0 : Math.max(0, most - held.size + taken.length)
}

/** Shows messages, and remembers what the end of the session needs. */
const keep = (session: Session.Session, page: ReadonlyArray<Session.Content>): void => {
  const { held, isForgetting, pages, source } = session
  pages.seen(page.map(({ message }) => message.content.length))
  const shown = page.map(({ message }) => held.get(message.fields.deliveryTag)!)
  for (const each of shown) each.isShown = true
  session.isForgetting = !source.isCounted && (held.size > maxKept || session.bytes > maxKeptBytes)
  if (!session.isForgetting) return
  // Messages shown before were forgotten at that point.
  for (const each of isForgetting ? shown : held.values())
    if (each.isShown && each.content !== undefined && !source.isNear(each.content)) Session.forget(session, each)
}

/**
 * Shows up to `count` further messages, and at most `limit` in all; none of a missing queue. Fails if other consumers may have
 * received messages that were shown.
 */
export const show = (
  session: Session.Session,
  count: number,
  limit: number,
  env: Dependencies
): Effect.Effect<ReadonlyArray<Session.Content>, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { isOpen, lost, pages, source, taken, turn } = session
    const hasShown = shownOf(session) > 0
    const room = roomOf(session, limit)
    const most = Math.min(count, room)
    const wanted = source.isDelayed ? Math.min(portion, taken.length === 0 ? room : 0) : Math.min(most, pages.size())
    // On a slow connection, a page may take longer than a response.
    yield* request({ operation: "browse", queue: source.queue }, 3 * env.requestTimeout, () =>
      turn(() => Session.take(session, wanted, env))
    ).pipe(
      Effect.catch((error) => {
        if (isOpen() || (!hasShown && error.reason !== "QueueMissing")) return Effect.fail(error)
        session.isWhole = !hasShown
        return hasShown ? Effect.fail(lost()) : Effect.void
      })
    )
    if (session.state !== "open" || session.isWhole) return []
    if (!isOpen()) return yield* lost()
    const page = taken.splice(0, most)
    keep(session, page)
    return page
  })

/** The data that removing a browsed delivery needs. */
interface Receipt {
  readonly session: Session.Session
  readonly tag: number
  /** The name of this copy; `undefined` for a foreign message. */
  readonly name: string | undefined
}

export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // The core returns our own.

/** The delivery as the next consumer of the queue would see it. Its copy keeps the properties of the message. */
export const toDelivery = (
  session: Session.Session,
  { decoded, message }: Session.Content,
  queue: string
): Delivery.Delivery => {
  const { content, fields, properties } = message
  Originals.note(decoded.body, Wire.propertiesOf(message))
  return {
    ...decoded,
    get native() {
      return toNative(Wire.propertiesOf(message), decoded.metadata.deadLetter?.queue ?? queue)
    },
    receipt: { session, tag: fields.deliveryTag, name: identify(content, properties) } satisfies Receipt
  }
}

const gone = (queue: string, delivery: Delivery.Delivery): Broker.SettleFailure => ({
  delivery,
  error: new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "browse",
    queue,
    reason: "LeaseLost",
    detail: "the browser no longer holds the message: it was removed before or returned to the server"
  }),
  fate: "lost"
})

/** Removes messages, and returns those that may not be removed. */
export const remove = (
  deliveries: ReadonlyArray<Delivery.Delivery>,
  queue: string,
  env: Dependencies
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
  Effect.suspend(() => {
    const isHeld = (delivery: Delivery.Delivery): boolean => {
      const { session, tag } = receiptOf(delivery)
      const isKnown = session.held.get(tag)?.isShown === true || session.unproven.has(tag)
      return isKnown && session.isOpen() && session.state === "open"
    }
    const { held = [], others = [] } = Object.groupBy(deliveries, (one) => (isHeld(one) ? "held" : "others"))
    const failures = others.map((delivery) => gone(queue, delivery))
    const [first] = held
    if (first === undefined) return Effect.succeed(failures)
    // A browser has one session at a time.
    const { session } = receiptOf(first)
    const tags = held.map((delivery) => receiptOf(delivery).tag)
    const written = tags.filter((tag) => Session.release(session, tag))
    for (const tag of tags) session.unproven.add(tag)
    const run = () => session.turn(() => Session.acknowledge(session, written, env))
    return Effect.match(request({ operation: "browse", queue }, 3 * env.requestTimeout, run), {
      onSuccess: () => {
        for (const tag of tags) session.unproven.delete(tag)
        return failures
      },
      onFailure: (error) => [...failures, ...held.map((delivery) => ({ delivery, error, fate: "unknown" as const }))]
    })
  })
