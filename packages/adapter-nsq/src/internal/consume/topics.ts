/** Sessions of each topic on each nsqd that has it, all under one credit. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type { Lookup } from "../connect/lookup.ts"
import type { Node } from "../connect/nodes.ts"
import type { Queue } from "../names.ts"
import * as Sessions from "./sessions.ts"

export interface TopicsDependencies extends Sessions.SessionsDependencies {
  readonly lookup: Lookup
}

export interface Topics {
  /** Opens sessions of all topics on an nsqd. */
  readonly join: (node: Node) => Effect.Effect<void>
  /** Whether there are sessions of a topic. */
  readonly isJoined: (topic: Queue) => boolean
  /** Ends with the first attempts to connect: with an error when one of them was refused, or all of a topic failed. */
  readonly ready: Effect.Effect<void, BrokerError.BrokerError>
}

interface Joined extends Sessions.Sessions {
  /** How often in a row nsqlookupd did not know that the nsqd has the topic. */
  absences: number
}

/** An nsqd that restarts is unknown to nsqlookupd for a moment: it is left after so many absences. */
const maxAbsences = 2

/** Milliseconds between two ticks of the credit. */
const tickInterval = 50

/** The error for which a topic cannot be consumed, if there is one: an nsqd refused, or none could be reached. */
const errorOf = (tried: ReadonlyArray<Result.Result<void, BrokerError.BrokerError>>) => {
  const failed = tried.filter(Result.isFailure).map(({ failure }) => failure)
  return failed.find(({ isRetryable }) => !isRetryable) ?? (failed.length === tried.length ? failed[0] : undefined)
}

/**
 * Opens sessions on the nsqd of the options, and on those that nsqlookupd knows. On an nsqd that has a topic, sessions of
 * the later topics are opened as well.
 */
export const open = (
  topics: ReadonlyArray<Queue>,
  subscriber: Sessions.Subscriber,
  dependencies: TopicsDependencies
): Effect.Effect<Topics, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { lookup, nodes, settings } = dependencies
    const scope = yield* Effect.scope
    const joined = new Map<Queue, Map<Node, Joined>>(topics.map((topic) => [topic, new Map()]))

    const joinTopic = (node: Node, topic: Queue): Effect.Effect<void> =>
      Effect.suspend(() => {
        const byNode = joined.get(topic)!
        if (byNode.has(node)) return Effect.void
        const opened = Scope.provide(Sessions.open(node, topic, subscriber, dependencies), scope)
        return Effect.map(opened, (sessions) => void byNode.set(node, { ...sessions, absences: 0 }))
      })

    const join = (node: Node): Effect.Effect<void> =>
      Effect.forEach(topics, (topic) => joinTopic(node, topic), { discard: true })

    const leaveAbsent = (topic: Queue, known: ReadonlySet<Node>): Effect.Effect<void> =>
      Effect.suspend(() => {
        const byNode = joined.get(topic)!
        const left: Array<Sessions.Sessions> = []
        for (const [node, sessions] of byNode) {
          sessions.absences = known.has(node) || nodes.given.includes(node) ? 0 : sessions.absences + 1
          if (sessions.absences < maxAbsences) continue
          byNode.delete(node)
          left.push(sessions)
        }
        return Effect.forEach(left, ({ retire }) => Effect.forkIn(retire, scope), { discard: true })
      })

    const discover = Effect.gen(function* () {
      const found = yield* Effect.forEach(topics, ({ topic }) => lookup.topic(topic), { concurrency: "unbounded" })
      const known = new Set<Node>()
      for (const [index, topic] of topics.entries()) {
        const addresses = found[index]
        if (addresses === undefined) return
        for (const address of addresses) known.add(nodes.at(address))
        for (const node of known) yield* joinTopic(node, topic)
        yield* leaveAbsent(topic, known)
      }
    })

    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        const all = [...joined.values()].flatMap((byNode) => [...byNode.values()])
        return Effect.forEach(all, ({ close }) => close, { discard: true, concurrency: "unbounded" })
      })
    )
    const tick = Effect.andThen(Effect.sleep(tickInterval), Effect.sync(subscriber.credit.tick))
    yield* Effect.forkScoped(Effect.forever(tick))
    if (settings.lookupd.length > 0) {
      const every = Schedule.jittered(Schedule.spaced(Duration.millis(settings.lookupdInterval)))
      yield* discover
      yield* Effect.forkScoped(Effect.schedule(discover, every))
    }
    for (const node of nodes.given) yield* join(node)

    const readyOf = Effect.fnUntraced(function* (topic: Queue) {
      const all = [...joined.get(topic)!.values()]
      const tried = yield* Effect.forEach(all, ({ connection }) => Effect.result(connection.tried), {
        concurrency: "unbounded"
      })
      const error = errorOf(tried)
      if (error !== undefined) return yield* error
    })
    return {
      join,
      isJoined: (topic) => joined.get(topic)!.size > 0,
      ready: Effect.forEach(topics, readyOf, { discard: true, concurrency: "unbounded" })
    }
  })
