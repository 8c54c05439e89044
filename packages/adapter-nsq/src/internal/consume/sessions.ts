/** A topic on an nsqd: one session after another, until it is left. */
import type { BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Settings } from "../../NsqOptions.ts"
import * as Client from "../client.ts"
import type { Credit } from "./credit.ts"
import * as Link from "../connect/connection.ts"
import type { Queue } from "../names.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import type { Presence } from "../connect/connectionCount.ts"
import * as Session from "./session.ts"
import type { Frame } from "./toDelivery.ts"

export interface Environment {
  readonly settings: Settings
  readonly nodes: Nodes
  /** What every nsqd is asked to give us for one delivery, in milliseconds. */
  readonly messageTimeout: number
  readonly fork: (effect: Effect.Effect<unknown>) => void
}

export interface Request {
  /** As the program calls it. */
  readonly queue: string
  readonly presence: Presence
  readonly credit: Credit
  readonly toDelivery: (frame: Frame, receipt: Session.Receipt) => Delivery.Delivery
  readonly onDelivery: (delivery: Delivery.Delivery) => void
  readonly onReconnect: (isGone: (delivery: Delivery.Delivery) => boolean) => void
}

export interface Post {
  readonly link: Link.Link<Session.Session>
  /** Gives back what is unsettled, and ends. */
  readonly close: Effect.Effect<void>
  /** Takes no more, and ends when nothing is unsettled. */
  readonly retire: Effect.Effect<void>
}

/** How often a post that is left looks whether it is idle, in milliseconds. */
const look = 100

/** Longest time for nsqd to say good-bye. */
const goodbye = Duration.seconds(2)

const isOf =
  (session: Session.Session) =>
  ({ receipt }: Delivery.Delivery): boolean =>
    (receipt as Session.Receipt).session === session

/** One connection, with a session on it. */
const connect = (
  request: Request,
  env: Environment,
  at: { readonly node: Node; readonly topic: Queue; readonly isAgain: boolean }
): Effect.Effect<Session.Session, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { messageTimeout, nodes, settings } = env
    const { node } = at
    const { channel, topic } = at.topic
    const { queue } = request
    const gone = Deferred.makeUnsafe<void>()
    /** Nothing is delivered before there is one. */
    const made: { session?: Session.Session } = {}

    const refused = (session: Session.Session, text: string): void => {
      const note = session.refuse(text) ? "a lease was lost" : "nsqd took a message back before its settlement"
      env.fork(Effect.annotateLogs(Effect.logWarning(note), { queue, nsqd: node.name, error: text }))
    }
    const on: Client.Listener = {
      message: (payload) => made.session?.receive(payload),
      refused: (text) => made.session && refused(made.session, text),
      closed: () => {
        made.session?.end()
        Deferred.doneUnsafe(gone, Exit.void)
      }
    }
    const connection = yield* Link.opening({ operation: "subscribe", queue, node: node.name }, settings, (signal) =>
      Client.subscribe(settings, node.address, { topic, channel, messageTimeout }, on, signal)
    )
    const session = Session.make({ ...request, node, topic: at.topic, connection, gone })
    made.session = session
    if (Deferred.isDoneUnsafe(gone)) session.end()
    // An nsqd that was gone may come back with other limits.
    const learn = at.isAgain || !nodes.isKnown(node) ? nodes.learn(node, connection.identity) : Effect.void
    yield* Effect.onError(learn, () => Effect.sync(connection.destroy))
    return session
  })

/** Lives as long as the scope, unless it is closed before. */
export const open = (
  node: Node,
  topic: Queue,
  request: Request,
  env: Environment
): Effect.Effect<Post, never, Scope.Scope> =>
  Effect.gen(function* () {
    const own = yield* Scope.fork(yield* Effect.scope)
    let last: Session.Session | undefined
    let isEnding = false

    const next = Effect.suspend(() =>
      isEnding ? Effect.never : connect(request, env, { node, topic, isAgain: last !== undefined })
    ).pipe(
      Effect.tap((session) =>
        Effect.sync(() => {
          leave()
          last = session
          session.begin(request.credit)
        })
      )
    )
    /** Nobody has to do any more with what the last session delivered. */
    const leave = (): void => {
      if (last === undefined) return
      last.forget()
      request.onReconnect(isOf(last))
    }
    const name = { nsqd: node.name, topic: topic.topic, queue: request.queue }
    const link = yield* Scope.provide(Link.make(name, next, env.settings, request.presence), own)

    const end = Effect.suspend(() => {
      isEnding = true
      const session = link.current()
      if (session?.isOpen() !== true) return Effect.void
      return Effect.tryPromise(session.close).pipe(
        Effect.andThen(Deferred.await(session.gone)),
        Effect.timeout(goodbye),
        Effect.ignore,
        Effect.ensuring(Effect.sync(() => session.connection.destroy()))
      )
    })
    yield* Scope.addFinalizer(own, end)
    const close = Scope.close(own, Exit.void)

    const retire = Effect.gen(function* () {
      isEnding = true
      const session = link.current()
      session?.retire()
      while (session?.isOpen() === true && !session.isIdle()) yield* Effect.sleep(look)
      yield* close
      leave()
    })
    return { link, close, retire }
  })
