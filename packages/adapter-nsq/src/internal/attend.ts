/** Attends topics: a session for each topic on each nsqd that has it, all under one credit. */
import type { BrokerError } from "@requeue/core/BrokerError"
import type { Delivery } from "@requeue/core/Delivery"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type { Settings } from "../NsqOptions.ts"
import * as Client from "./client.ts"
import type { Credit } from "./credit.ts"
import * as Link from "./link.ts"
import type { Lookup } from "./lookup.ts"
import type { Queue } from "./names.ts"
import type { Node, Nodes } from "./nodes.ts"
import * as Session from "./session.ts"
import type { Frame } from "./toDelivery.ts"

export interface Environment {
  readonly settings: Settings
  readonly nodes: Nodes
  readonly lookup: Lookup
  /** What every nsqd is asked to give us for one delivery, in milliseconds. */
  readonly messageTimeout: number
  readonly fork: (effect: Effect.Effect<unknown>) => void
}

export interface Wish {
  /** As the program calls it. */
  readonly queue: string
  readonly topics: ReadonlyArray<Queue>
  readonly credit: Credit
  readonly toDelivery: (frame: Frame, receipt: Session.Receipt) => Delivery
  readonly onDelivery: (delivery: Delivery) => void
  readonly onReconnect: (isGone: (delivery: Delivery) => boolean) => void
}

export interface Attendance {
  /** Attends all topics on this nsqd, from now on. */
  readonly join: (node: Node) => Effect.Effect<void>
  /** Whether any nsqd is known to have the topic. */
  readonly isAttended: (topic: Queue) => boolean
  /** Ends with the first attempts to connect: with an error when one was refused, or all of them failed. */
  readonly ready: Effect.Effect<void, BrokerError>
}

/** A topic on an nsqd. */
interface Post {
  readonly link: Link.Link<Session.Session>
  /** Gives back what is unsettled, and ends. */
  readonly close: Effect.Effect<void>
  /** Takes no more, and ends when nothing is unsettled. */
  readonly retire: Effect.Effect<void>
  /** How often in a row nobody knew of it. */
  absences: number
}

/** How often the credit is given out anew, in milliseconds. */
const turn = 100

/** Longest time for nsqd to say good-bye. */
const goodbye = Duration.seconds(2)

const isOf =
  (session: Session.Session) =>
  ({ receipt }: Delivery): boolean =>
    (receipt as Session.Receipt).session === session

export const attend = (wish: Wish, env: Environment): Effect.Effect<Attendance, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { credit, queue } = wish
    const { lookup, nodes, settings } = env
    const scope = yield* Effect.scope
    const posts = new Map<Queue, Map<Node, Post>>(wish.topics.map((topic) => [topic, new Map()]))
    const refused = (session: Session.Session, text: string): void => {
      const note = session.refuse(text) ? "a lease was lost" : "nsqd took a message back before its settlement"
      env.fork(Effect.annotateLogs(Effect.logWarning(note), { queue, nsqd: session.node.name, error: text }))
    }

    const connect = (
      node: Node,
      { channel, topic }: Queue,
      isAgain: boolean
    ): Effect.Effect<Session.Session, BrokerError> =>
      Effect.gen(function* () {
        const gone = Deferred.makeUnsafe<void>()
        /** Nothing is delivered before there is one. */
        const made: { session?: Session.Session } = {}
        const context = { operation: "subscribe", queue, node: node.name }
        const connection = yield* Link.opening(context, settings, (signal) =>
          Client.subscribe(
            settings,
            node.address,
            { topic, channel, messageTimeout: env.messageTimeout },
            {
              message: (payload) => made.session?.receive(payload),
              refused: (text) => made.session && refused(made.session, text),
              closed: () => {
                made.session?.end()
                Deferred.doneUnsafe(gone, Exit.void)
              }
            },
            signal
          )
        )
        const session = Session.make({ ...wish, node, connection, gone })
        made.session = session
        if (Deferred.isDoneUnsafe(gone)) session.end()
        // An nsqd that was gone may come back with other limits.
        const learn = isAgain || !nodes.isKnown(node) ? nodes.learn(node, connection.identity) : Effect.void
        yield* Effect.onError(learn, () => Effect.sync(connection.destroy))
        return session
      })

    const open = (node: Node, topic: Queue): Effect.Effect<Post> =>
      Effect.gen(function* () {
        const own = yield* Scope.fork(scope)
        let last: Session.Session | undefined
        let isEnding = false
        const opening = Effect.suspend(() => (isEnding ? Effect.never : connect(node, topic, last !== undefined))).pipe(
          Effect.tap((session) =>
            Effect.sync(() => {
              const before = last
              last = session
              before?.forget()
              if (before !== undefined) wish.onReconnect(isOf(before))
              session.begin(credit)
            })
          )
        )
        const name = { nsqd: node.name, topic: topic.topic, queue }
        const link = yield* Scope.provide(Link.make(name, opening, settings), own)
        const close = Effect.suspend(() => {
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
        yield* Scope.addFinalizer(own, close)
        const retire = Effect.gen(function* () {
          const session = link.current()
          session?.retire()
          while (session?.isOpen() === true && !session.isIdle()) yield* Effect.sleep(turn)
          yield* Scope.close(own, Exit.void)
          if (last === undefined) return
          last.forget()
          wish.onReconnect(isOf(last))
        })
        return { link, close: Scope.close(own, Exit.void), retire, absences: 0 }
      })

    const joinTopic = (node: Node, topic: Queue): Effect.Effect<Post> =>
      Effect.suspend(() => {
        const mine = posts.get(topic)!
        const found = mine.get(node)
        if (found !== undefined) return Effect.succeed(found)
        return Effect.tap(open(node, topic), (post) => Effect.sync(() => mine.set(node, post)))
      })

    /** An nsqd that restarts is unknown for a moment: only who stays away is left alone. */
    const leaveTopic = (topic: Queue, known: ReadonlyArray<Node>): Effect.Effect<void> =>
      Effect.suspend(() => {
        const mine = posts.get(topic)!
        const gone: Array<Post> = []
        for (const [node, post] of mine) {
          post.absences = known.includes(node) || nodes.given.includes(node) ? 0 : post.absences + 1
          if (post.absences < 2) continue
          mine.delete(node)
          gone.push(post)
        }
        return Effect.forEach(gone, ({ retire }) => Effect.forkIn(retire, scope), { discard: true })
      })

    const discover = Effect.forEach(
      wish.topics,
      (topic) =>
        Effect.gen(function* () {
          const addresses = yield* lookup.topic(topic.topic)
          if (addresses === undefined) return
          const known = addresses.map(nodes.at)
          for (const node of known) yield* joinTopic(node, topic)
          yield* leaveTopic(topic, known)
        }),
      { discard: true, concurrency: "unbounded" }
    )

    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        const all = [...posts.values()].flatMap((mine) => [...mine.values()])
        return Effect.forEach(all, ({ close }) => close, { discard: true, concurrency: "unbounded" })
      })
    )
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(turn), Effect.sync(credit.tick))))
    if (settings.lookupd.length > 0) {
      const every = Schedule.jittered(Schedule.spaced(Duration.millis(settings.lookupdInterval)))
      yield* discover
      yield* Effect.forkScoped(Effect.schedule(discover, every))
    }

    const join = (node: Node): Effect.Effect<void> =>
      Effect.forEach(wish.topics, (topic) => joinTopic(node, topic), { discard: true })
    for (const node of nodes.given) yield* join(node)

    /** Ends when every attempt has; a topic that nobody attends is an error, and so is a missing permission. */
    const ready = Effect.forEach(
      wish.topics,
      (topic) =>
        Effect.gen(function* () {
          const mine = [...posts.get(topic)!.values()]
          const errors = yield* Effect.forEach(mine, ({ link }) => link.tried, { concurrency: "unbounded" })
          const failed = errors.filter((error) => error !== undefined)
          const fatal =
            failed.find(({ isRetryable }) => !isRetryable) ?? (failed.length === mine.length ? failed[0] : undefined)
          if (fatal !== undefined) return yield* fatal
        }),
      { discard: true, concurrency: "unbounded" }
    )
    return { join, ready, isAttended: (topic) => posts.get(topic)!.size > 0 }
  })
