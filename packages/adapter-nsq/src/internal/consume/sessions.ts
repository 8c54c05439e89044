/** Successive sessions of one topic on one nsqd, until the subscription ends or the topic is left. */
import { type Broker, type BrokerError, type Delivery, Log } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Settings } from "../../NsqOptions.ts"
import type * as Driver from "../driver.ts"
import * as Connection from "../connect/connection.ts"
import type { ConnectionCount } from "../connect/connectionCount.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import type { Access } from "../http.ts"
import type { Queue } from "../names.ts"
import * as NsqdStats from "../nsqdStats.ts"
import { toBrokerError } from "../toBrokerError.ts"
import type { Credit } from "./credit.ts"
import type { SettlingSession } from "./receipt.ts"
import * as Session from "./session.ts"
import type { Decoded, Frame } from "./toDelivery.ts"

export interface SessionsDependencies {
  readonly settings: Settings
  readonly driver: Driver.Driver
  readonly nodes: Nodes
  /** The lease requested from every nsqd, in milliseconds. */
  readonly messageTimeout: number
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
  readonly fork: (effect: Effect.Effect<unknown>) => void
}

/** The receiver of deliveries, and the credit for them. */
export interface Subscriber {
  /** The name of the queue as the program uses it. */
  readonly queue: string
  /** Counts the open connections of the subscription. */
  readonly connectionCount: ConnectionCount
  readonly credit: Credit
  /** The sessions that may have deliveries. */
  readonly sessions: Set<Session.Session>
  readonly decode: (frame: Frame, session: SettlingSession) => Decoded
  readonly isFinished: (name: string) => boolean
  readonly onDelivery: (delivery: Delivery.Delivery) => void
  readonly onReconnect: Broker.SubscribeOptions["onReconnect"]
  readonly onRefused?: Broker.SubscribeOptions["onRefused"]
}

export interface Sessions {
  readonly connection: Connection.KeptConnection<Session.Session>
  /** Stops receiving messages, and ends when all deliveries are settled. */
  readonly retire: Effect.Effect<void>
}

/** Pause between `retire`'s checks for unsettled deliveries, in milliseconds. */
const lookAgain = 100

/**
 * Milliseconds until nsqd has deleted a topic after disconnecting its clients. It also forgets clients that subscribe
 * before.
 */
const forgetting = 100

/** Delay before nsqd is asked whether it lists a session: after its start, and after a request without an answer. */
const listing = Duration.seconds(1)

/** How long a closing session waits for nsqd to close the connection. */
const closeTimeout = Duration.seconds(1)

/** Opens a connection with a session. */
export const connect = (
  subscriber: Pick<Subscriber, "queue" | "sessions" | "decode" | "isFinished" | "onDelivery" | "onRefused">,
  { driver, elapsed, fork, messageTimeout, nodes, settings }: SessionsDependencies,
  { isAgain, node, topic }: { readonly node: Node; readonly topic: Queue; readonly isAgain: boolean }
): Effect.Effect<Session.Session, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { queue } = subscriber
    const gone = Deferred.makeUnsafe<void>()
    /** Empty until the connection is open; nsqd sends no message before. */
    const opened: { session?: Session.Session } = {}

    const on: Driver.Listener = {
      message: (payload) => opened.session?.receive(payload),
      refused: (text) => {
        const { session } = opened
        if (session === undefined) return
        const refused = session.refuse(text)
        if (typeof refused === "object") {
          const context = { operation: "settle", queue, node: node.name }
          const { delivery, settlement } = refused
          return subscriber.onRefused?.({ delivery, settlement, error: toBrokerError(new Error(text), context) })
        }
        const note = refused === "lost" ? "a lease was lost" : "nsqd requeued a message before its settlement"
        fork(Log.warning(note, { queue, nsqd: node.name, errorMessage: text }))
      },
      closed: () => {
        opened.session?.end()
        Deferred.doneUnsafe(gone, Exit.void)
      }
    }
    const request = { topic: topic.topic, channel: topic.channel, messageTimeout }
    if (isAgain) yield* Effect.sleep(Duration.millis(forgetting))
    const opening = Connection.open({ operation: "subscribe", queue, node: node.name }, settings, (signal) =>
      driver.subscribe(settings, node.address, request, on, signal)
    )
    const connection = yield* nodes.subscribing(node).withPermit(opening)
    const session = Session.make({ ...subscriber, node, topic, connection, gone, elapsed })
    opened.session = session
    if (Deferred.isDoneUnsafe(gone)) session.end()
    // An nsqd that has restarted may have other limits.
    const learn = isAgain || !nodes.isKnown(node) ? nodes.learn(node, connection.identity) : Effect.void
    yield* Effect.onError(learn, () => Effect.sync(connection.destroy))
    return session
  })

/**
 * Whether nsqd lists a session among its clients. When a topic is deleted, nsqd disconnects its clients before it
 * removes the topic: a client that subscribes in between receives heartbeats but no messages. Fails if nsqd does not
 * answer.
 */
const isListed = (
  { connection, node, topic }: Session.Session,
  access: Access
): Effect.Effect<boolean, BrokerError.BrokerError> =>
  Effect.map(NsqdStats.clients(node.address.http!, topic, access), (ids) => ids.includes(connection.clientId))

/** Reconnects a session that nsqd no longer lists, if it has listed one before. Never ends. */
const watchListing = (connection: Sessions["connection"], node: Node, access: Access): Effect.Effect<void> => {
  // The HTTP interface may be that of another nsqd, which never lists the session.
  let isTrusted = false
  const watch = (session: Session.Session) =>
    Effect.sleep(listing).pipe(
      Effect.andThen(isListed(session, access)),
      Effect.eventually,
      Effect.map((found) => {
        if (!found && isTrusted) session.connection.destroy(new Error("nsqd has forgotten this client with its topic"))
        isTrusted ||= found
      }),
      Effect.andThen(Effect.never)
    )
  const one = Effect.flatMap(connection.live, (session) =>
    Effect.raceFirst(Deferred.await(session.gone), watch(session))
  )
  return node.address.http === undefined ? Effect.never : Effect.forever(one)
}

/**
 * Connects, and reconnects whenever the connection is lost, unless `mayConnect` returns `false`. Lives as long as the
 * scope, or until `retire`.
 */
export const open = (
  node: Node,
  topic: Queue,
  subscriber: Subscriber,
  dependencies: SessionsDependencies,
  mayConnect: () => boolean
): Effect.Effect<Sessions, never, Scope.Scope> =>
  Effect.gen(function* () {
    const own = yield* Scope.fork(yield* Effect.scope)
    let last: Session.Session | undefined
    let isEnding = false

    /** Ends the deliveries of the last session: they can no longer be settled. */
    const forgetLast = (): void => {
      if (last === undefined) return
      subscriber.sessions.delete(last)
      last.forget(subscriber.onReconnect)
    }
    const opened = Connection.make<Session.Session>(dependencies.settings, subscriber.connectionCount, {
      connect: Effect.suspend(() =>
        isEnding || !mayConnect()
          ? Effect.never
          : connect(subscriber, dependencies, { node, topic, isAgain: last !== undefined })
      ),
      annotations: { nsqd: node.name, topic: topic.topic, queue: subscriber.queue },
      onChange: (session) => {
        if (session === undefined) return
        forgetLast()
        last = session
        subscriber.sessions.add(session)
        session.begin(subscriber.credit)
      }
    })
    const connection = yield* Scope.provide(opened, own)
    yield* Effect.forkIn(watchListing(connection, node, dependencies), own)

    const closeSession = Effect.suspend(() => {
      isEnding = true
      const session = connection.current()
      if (session?.isOpen() !== true) return Effect.void
      return Effect.tryPromise(session.close).pipe(
        Effect.andThen(Deferred.await(session.gone)),
        Effect.timeout(closeTimeout),
        Effect.ignore,
        Effect.ensuring(Effect.sync(() => session.connection.destroy()))
      )
    })
    yield* Scope.addFinalizer(own, closeSession)
    const close = Scope.close(own, Exit.void)

    const retire = Effect.gen(function* () {
      isEnding = true
      const session = connection.current()
      session?.retire()
      while (session?.isOpen() === true && !session.isIdle()) yield* Effect.sleep(lookAgain)
      yield* close
      forgetLast()
    })
    return { connection, retire }
  })
