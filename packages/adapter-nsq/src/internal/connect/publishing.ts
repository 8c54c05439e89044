/** Connections for publishing, one per nsqd, and the choice among them: the first that is up, or each in turn. */
import { BrokerError, type Connection as BrokerConnection, Deadlines, Delay, Timers } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../NsqOptions.ts"
import type { Driver } from "../driver.ts"
import * as Publisher from "../publish/publisher.ts"
import * as Candidates from "./candidates.ts"
import * as Connection from "./connection.ts"
import * as ConnectionCount from "./connectionCount.ts"
import type { Lookup } from "./lookup.ts"
import { distinct, isSame, type Node, type Nodes } from "./nodes.ts"

export interface Publishing {
  /**
   * Returns `count` open connections to different nsqd, the preferred one first if it is up. Fails with
   * `ConnectionFailed` after `publishTimeout`.
   */
  readonly pick: (
    count: number,
    prefer?: Node
  ) => Effect.Effect<ReadonlyArray<Publisher.Publisher>, BrokerError.BrokerError>
  /** Returns the result of `pick` without waiting, if the first `count` nsqd are up, as usual. */
  readonly ready: (count: number, prefer?: Node) => ReadonlyArray<Publisher.Publisher> | undefined
  /** `up` while a connection for publishing is open. */
  readonly state: () => BrokerConnection.Connection
}

type Opened = Connection.KeptConnection<Publisher.Publisher>

/** The publishers that are up, at most `count`, and the errors of the others. */
interface Attempt {
  readonly up: ReadonlyArray<Publisher.Publisher>
  readonly errors: ReadonlyArray<BrokerError.BrokerError>
}

/** How long the start waits for further nsqd once one is up. */
const startTimeout = Duration.seconds(1)

/** How long `pick` waits for a connection before it checks the candidates again, in milliseconds. */
const lookAgain = 1000

/** Keeps one connection per requested nsqd. */
const makeConnections = (settings: Settings, driver: Driver, nodes: Nodes) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    // Forked now: consumers that start later in the same scope end before these connections.
    const scope = yield* Scope.fork(yield* Effect.scope)
    const count = ConnectionCount.make(() => clock.currentTimeMillisUnsafe())
    const deadlines = Deadlines.make(yield* Timers.make, settings.publishTimeout)
    const mutex = yield* Semaphore.make(1)
    const opened = new Map<Node, { readonly connection: Opened; readonly scope: Scope.Closeable }>()

    const open = Effect.fnUntraced(function* (node: Node) {
      const own = yield* Scope.fork(scope)
      const made = Connection.make(settings, count, {
        connect: Publisher.open(node, nodes, { driver, settings, deadlines }),
        annotations: { nsqd: node.name, role: "publish" }
      })
      const connection = yield* Scope.provide(made, own)
      opened.set(node, { connection, scope: own })
      return connection
    })

    return {
      state: count.state,
      to: (node: Node): Effect.Effect<Opened> =>
        mutex.withPermits(1)(
          Effect.suspend(() => {
            const found = opened.get(node)
            return found === undefined ? open(node) : Effect.succeed(found.connection)
          })
        ),
      current: (node: Node): Publisher.Publisher | undefined => opened.get(node)?.connection.current(),
      /** Ends when one of the lost connections opens. */
      next: Effect.suspend(() => {
        const lost = [...opened.values()].filter(({ connection }) => connection.current() === undefined)
        return Effect.raceAllFirst([...lost.map(({ connection }) => Effect.asVoid(connection.live)), Effect.never])
      }),
      /** Closes the connections of nsqd that are down and no longer candidates. */
      forget: (candidates: ReadonlyArray<Node>): Effect.Effect<void> =>
        Effect.suspend(() => {
          const gone = [...opened].filter(
            ([node, { connection }]) => !candidates.includes(node) && connection.current() === undefined
          )
          for (const [node] of gone) opened.delete(node)
          return Effect.forEach(gone, ([, { scope: own }]) => Scope.close(own, Exit.void), { discard: true })
        })
    }
  })

/** Connects to the first nsqd that is up. Fails if none is. */
export const make = (
  settings: Settings,
  driver: Driver,
  nodes: Nodes,
  lookup: Lookup
): Effect.Effect<Publishing, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const connections = yield* makeConnections(settings, driver, nodes)
    const closed = Deferred.makeUnsafe<never, BrokerError.BrokerError>()
    yield* Effect.addFinalizer(() => Deferred.fail(closed, whenClosed))
    const isUp = (node: Node): boolean => connections.current(node) !== undefined
    const openAll = (all: ReadonlyArray<Node>): Effect.Effect<void> =>
      settings.publishOver === "all" ? Effect.forEach(all, connections.to, { discard: true }) : Effect.void
    const candidates = yield* Candidates.make(settings, nodes, lookup, isUp, (all) =>
      Effect.andThen(connections.forget(all), openAll(all))
    )
    const inOrder = ordering(settings, candidates, isUp)

    const attempt = Effect.fnUntraced(function* (count: number, from: ReadonlyArray<Node>) {
      const up: Array<Publisher.Publisher> = []
      const errors: Array<BrokerError.BrokerError> = []
      for (const node of from) {
        if (up.length === count) break
        const connection = yield* connections.to(node)
        yield* Effect.exit(connection.tried)
        const [publisher, error] = [connection.current(), connection.error()]
        const same = up.find((other) => isSame(other.node, node))
        if (publisher === undefined) errors.push(...(error === undefined ? [] : [error]))
        else if (same === undefined) up.push(publisher)
        else errors.push(alias(same.node, node))
      }
      return { up, errors } satisfies Attempt
    })

    const ready: Publishing["ready"] = (count, prefer) => {
      const all = inOrder(prefer)
      const first = count === 1 ? all.slice(0, 1) : distinct(all).slice(0, count)
      const up = first.map(connections.current).filter((publisher) => publisher !== undefined)
      return up.length === count ? up : undefined
    }

    const pick: Publishing["pick"] = (count, prefer) => {
      let last: Attempt | undefined
      const keepTrying: Effect.Effect<ReadonlyArray<Publisher.Publisher>> = Effect.suspend(() =>
        Effect.flatMap(attempt(count, inOrder(prefer)), (result) => {
          last = result
          if (result.up.length >= count) return Effect.succeed(result.up)
          return Effect.andThen(Effect.raceFirst(connections.next, Effect.sleep(lookAgain)), keepTrying)
        })
      )
      const picked = Effect.timeoutOrElse(keepTrying, {
        duration: Duration.millis(settings.publishTimeout),
        orElse: () => Effect.fail(notReady(count, last, settings))
      })
      return Effect.raceFirst(picked, Deferred.await(closed))
    }

    const first = yield* attempt(1, candidates())
    if (first.up.length === 0) return yield* first.errors[0] ?? Candidates.noneFound(settings)
    // Learns the limits of all nsqd at the start; an nsqd that does not answer delays it by at most a second.
    const others = Effect.forEach(
      nodes.given,
      (node) => Effect.flatMap(connections.to(node), ({ tried }) => Effect.ignore(tried)),
      { concurrency: "unbounded", discard: true }
    )
    yield* Effect.timeoutOption(others, startTimeout)
    // Keeps one connection open even without publishes, so `state` reports whether publishing is possible.
    const keepOne = Effect.flatMap(pick(1), ([publisher]) => Deferred.await(publisher!.gone))
    yield* Effect.forkScoped(Effect.forever(Effect.ignore(keepOne)))
    return { pick, ready, state: connections.state }
  })

/** Returns the nsqd in the order of choice: the preferred one first, or with `publishOver: "all"` each in turn. */
const ordering = (
  { publishOver }: Settings,
  candidates: () => ReadonlyArray<Node>,
  isUp: (node: Node) => boolean
): ((prefer: Node | undefined) => ReadonlyArray<Node>) => {
  let turn = 0
  /** Rotates the nsqd that are up. */
  const inTurn = (): ReadonlyArray<Node> => {
    const all = candidates()
    const up = all.filter(isUp)
    const next = up.length === 0 ? 0 : turn++ % up.length
    return [...up.slice(next), ...up.slice(0, next), ...all.filter((node) => !up.includes(node))]
  }
  return (prefer) => {
    if (prefer !== undefined) return [prefer, ...candidates().filter((node) => node !== prefer)]
    return publishOver === "all" ? inTurn() : candidates()
  }
}

/** The error of a publish that still waits for a connection or a topic when the broker closes. */
export const whenClosed = new BrokerError.BrokerError({
  broker: "nsq",
  operation: "publish",
  reason: "ConnectionFailed",
  detail: "the broker was closed"
})

/** Makes the error of a second address of the same nsqd, which cannot hold another copy. */
const alias = (one: Node, other: Node): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: "publish",
    reason: "ConnectionFailed",
    detail: `${one.name} and ${other.name} are the same nsqd`
  })

const notReady = (count: number, last: Attempt | undefined, { publishTimeout }: Settings): BrokerError.BrokerError => {
  const reached = count === 1 ? "no nsqd" : `${last?.up.length ?? 0} of ${count} nsqd`
  const detail = `${reached} could be reached within ${Delay.format(publishTimeout)}`
  const because = last?.errors.find(({ isRetryable }) => !isRetryable) ?? last?.errors[0]
  return new BrokerError.BrokerError({
    broker: "nsq",
    operation: "publish",
    reason: "ConnectionFailed",
    detail: because === undefined ? detail : `${detail}: ${because.detail}`,
    remedy: count === 1 ? because?.remedy : "Start a further nsqd, or configure more nsqd than publishTo requires"
  })
}
