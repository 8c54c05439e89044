/** Attends topics: a post for each topic on each nsqd that has it, all under one credit. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type { Lookup } from "../connect/lookup.ts"
import type { Queue } from "../names.ts"
import type { Node } from "../connect/nodes.ts"
import * as Post from "./sessions.ts"

export interface Environment extends Post.Environment {
  readonly lookup: Lookup
}

export interface Request extends Post.Request {
  /** Each is attended where it is, and where one before it is. */
  readonly topics: ReadonlyArray<Queue>
}

export interface Attendance {
  /** Attends all topics on this nsqd, from now on. */
  readonly join: (node: Node) => Effect.Effect<void>
  /** Whether any nsqd is known to have the topic. */
  readonly isAttended: (topic: Queue) => boolean
  /** Ends with the first attempts to connect: with an error when one was refused, or all of them failed. */
  readonly ready: Effect.Effect<void, BrokerError.BrokerError>
}

interface Attended extends Post.Post {
  /** How often in a row nobody knew of it. */
  absences: number
}

/** How often the credit is given out anew, in milliseconds. */
const turn = 50

export const attend = (request: Request, env: Environment): Effect.Effect<Attendance, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { credit, topics } = request
    const { lookup, nodes, settings } = env
    const scope = yield* Effect.scope
    const posts = new Map<Queue, Map<Node, Attended>>(topics.map((topic) => [topic, new Map()]))

    const joinTopic = (node: Node, topic: Queue): Effect.Effect<void> =>
      Effect.suspend(() => {
        const mine = posts.get(topic)!
        if (mine.has(node)) return Effect.void
        const opened = Scope.provide(Post.open(node, topic, request, env), scope)
        return Effect.map(opened, (post) => void mine.set(node, { ...post, absences: 0 }))
      })

    /** An nsqd that restarts is unknown for a moment: only who stays away is left alone. */
    const leaveTopic = (topic: Queue, known: ReadonlySet<Node>): Effect.Effect<void> =>
      Effect.suspend(() => {
        const mine = posts.get(topic)!
        const gone: Array<Post.Post> = []
        for (const [node, post] of mine) {
          post.absences = known.has(node) || nodes.given.includes(node) ? 0 : post.absences + 1
          if (post.absences < 2) continue
          mine.delete(node)
          gone.push(post)
        }
        return Effect.forEach(gone, ({ retire }) => Effect.forkIn(retire, scope), { discard: true })
      })

    const discover = Effect.gen(function* () {
      const found = yield* Effect.forEach(topics, ({ topic }) => lookup.topic(topic), { concurrency: "unbounded" })
      const known = new Set<Node>()
      for (const [index, topic] of topics.entries()) {
        const addresses = found[index]
        if (addresses === undefined) return
        for (const address of addresses) known.add(nodes.at(address))
        for (const node of known) yield* joinTopic(node, topic)
        yield* leaveTopic(topic, known)
      }
    })

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
      Effect.forEach(topics, (topic) => joinTopic(node, topic), { discard: true })
    for (const node of nodes.given) yield* join(node)

    /** Ends when every attempt has; a topic that nobody attends is an error, and so is a missing permission. */
    const ready = Effect.forEach(
      topics,
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
