/** Sessions of each topic on each nsqd that has it, all sharing one credit. */
import type { BrokerError } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { maxAbsences } from "../connect/candidates.ts"
import * as Known from "../connect/known.ts"
import type { Lookup } from "../connect/lookup.ts"
import type { Node } from "../connect/nodes.ts"
import type { Access } from "../http.ts"
import type { Queue } from "../names.ts"
import * as NsqdStats from "../nsqdStats.ts"
import * as Sessions from "./sessions.ts"

export interface TopicsDependencies extends Sessions.SessionsDependencies {
  readonly lookup: Lookup
}

export interface Topics {
  /** Opens sessions of all topics on an nsqd. */
  readonly join: (node: Node) => Effect.Effect<void>
  /** Returns the nsqd with sessions of a topic. */
  readonly nodesOf: (topic: Queue) => ReadonlyArray<Node>
  /** Whether there are sessions of a topic. */
  readonly isJoined: (topic: Queue) => boolean
  /** Returns the nsqd to which a connection of a topic is open. */
  readonly connected: (topic: Queue) => ReadonlyArray<Node>
  /** Returns why every nsqd refuses consumers of a topic; `undefined` if one accepts them or does not answer. */
  readonly refusalOf: (topic: Queue) => BrokerError.BrokerError | undefined
  /** Ends after the first attempts to connect. Fails if one was refused, or all of a topic failed. */
  readonly ready: Effect.Effect<void, BrokerError.BrokerError>
}

interface Joined extends Sessions.Sessions {
  /** How often in a row nsqlookupd did not report the nsqd for the topic. */
  readonly absences: { count: number }
}

/** Whether to leave an nsqd, given whether nsqlookupd has just reported it. An open connection is never left. */
const isLeft = ({ absences, connection }: Joined, isNamed: boolean): boolean => {
  const wasAbsent = absences.count >= maxAbsences
  absences.count = isNamed ? 0 : absences.count + 1
  return connection.current() === undefined && (wasAbsent || absences.count >= maxAbsences)
}

const isUp = ([, { connection }]: readonly [Node, Joined]): boolean => connection.current() !== undefined

/** Returns why a topic cannot be consumed: an nsqd refused, or none could be reached. */
const errorOf = (tried: ReadonlyArray<Result.Result<void, BrokerError.BrokerError>>) => {
  const failed = tried.filter(Result.isFailure).map(({ failure }) => failure)
  return failed.find(({ isRetryable }) => !isRetryable) ?? (failed.length === tried.length ? failed[0] : undefined)
}

/**
 * Opens sessions on the nsqd of the options, and on those that nsqlookupd reports. On an nsqd that has a topic, it also
 * opens sessions of the topics after it.
 */
export const open = (
  topics: ReadonlyArray<Queue>,
  subscriber: Sessions.Subscriber,
  dependencies: TopicsDependencies
): Effect.Effect<Topics, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { lookup, nodes, settings } = dependencies
    // Forked now: sessions that are opened later also end at this point, all in parallel.
    const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
    const joined = new Map<Queue, Map<Node, Joined>>(topics.map((topic) => [topic, new Map()]))

    const used = () =>
      [...joined.values()].flatMap((byNode) => [...byNode].map((each) => ({ node: each[0], isUp: isUp(each) })))
    nodes.used.add(used)
    yield* Effect.addFinalizer(() => Effect.sync(() => nodes.used.delete(used)))

    const joinTopic = (node: Node, topic: Queue): Effect.Effect<void> =>
      Effect.suspend(() => {
        const byNode = joined.get(topic)!
        if (byNode.has(node)) return Effect.void
        const absences = { count: 0 }
        // Subscribing again would recreate a deleted topic.
        const isNamed = () => absences.count < maxAbsences
        const opened = Scope.provide(Sessions.open(node, topic, subscriber, dependencies, isNamed), scope)
        return Effect.map(opened, (sessions) => void byNode.set(node, { ...sessions, absences }))
      })

    const join = (node: Node): Effect.Effect<void> =>
      Effect.forEach(topics, (topic) => joinTopic(node, topic), { discard: true })

    const leaveAbsent = (topic: Queue, known: ReadonlySet<Node>): Effect.Effect<void> =>
      Effect.suspend(() => {
        const byNode = joined.get(topic)!
        const left: Array<Sessions.Sessions> = []
        for (const [node, sessions] of byNode) {
          if (!isLeft(sessions, known.has(node) || nodes.given.includes(node))) continue
          byNode.delete(node)
          left.push(sessions)
        }
        return Effect.forEach(left, ({ retire }) => Effect.forkIn(retire, scope), { discard: true })
      })

    const discover = Effect.gen(function* () {
      const found = yield* Effect.forEach(topics, ({ topic }) => lookup.topic(topic), { concurrency: "unbounded" })
      const known = new Set<Node>()
      for (const [index, topic] of topics.entries()) {
        const addresses = found[index]?.nsqd
        if (addresses === undefined) return
        for (const address of addresses) known.add(nodes.at(address))
        yield* leaveAbsent(topic, known)
        for (const node of known) yield* joinTopic(node, topic)
      }
    })

    if (settings.lookupd.length > 0) {
      const every = Schedule.jittered(Schedule.spaced(Duration.millis(settings.lookupdInterval)))
      const [kept] = yield* Effect.all([Known.kept(dependencies), discover], { concurrency: "unbounded" })
      yield* joinHaving(kept, topics, joinTopic, dependencies)
      yield* Effect.forkScoped(Effect.schedule(discover, every))
    }
    for (const node of nodes.given) yield* join(node)

    return {
      join,
      nodesOf: (topic) => [...joined.get(topic)!.keys()],
      isJoined: (topic) => joined.get(topic)!.size > 0,
      connected: (topic) => [...joined.get(topic)!].filter(isUp).map(([node]) => node),
      refusalOf: (topic) => refusal([...joined.get(topic)!.values()]),
      ready: Effect.forEach(topics, (topic) => tried([...joined.get(topic)!.values()]), {
        discard: true,
        concurrency: "unbounded"
      })
    }
  })

/** Whether an nsqd reports that it has a topic. */
const has = ({ address: { http } }: Node, { topic }: Queue, access: Access): Effect.Effect<boolean> =>
  http === undefined
    ? Effect.succeed(false)
    : Effect.match(NsqdStats.channels(http, topic, access), {
        onSuccess: (channels) => channels !== undefined,
        onFailure: () => false
      })

/** Asks the nsqd in use for their topics: a restarted or unreachable nsqlookupd does not report them. */
const joinHaving = Effect.fnUntraced(function* (
  nodes: ReadonlyArray<Node>,
  topics: ReadonlyArray<Queue>,
  joinTopic: (node: Node, topic: Queue) => Effect.Effect<void>,
  access: Access
) {
  for (const [index, topic] of topics.entries()) {
    const having = yield* Effect.filter(nodes, (node) => has(node, topic, access), { concurrency: "unbounded" })
    for (const node of having) for (const later of topics.slice(index)) yield* joinTopic(node, later)
  }
})

/** Returns why none is connected; `undefined` if one is, or may be soon. */
const refusal = (all: ReadonlyArray<Joined>): BrokerError.BrokerError | undefined => {
  const errors = all.map(({ connection }) => connection.error())
  return errors.every((error) => error?.isRetryable === false) ? errors[0] : undefined
}

/** Ends after the first attempts to connect to a topic. Fails if one was refused, or all failed. */
const tried = Effect.fnUntraced(function* (all: ReadonlyArray<Joined>) {
  const results = yield* Effect.forEach(all, ({ connection }) => Effect.result(connection.tried), {
    concurrency: "unbounded"
  })
  const error = errorOf(results)
  if (error !== undefined) return yield* error
})
