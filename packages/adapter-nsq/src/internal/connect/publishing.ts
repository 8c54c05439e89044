/** A publishing connection per nsqd, and the choice among them: the first one that is well. */
import { BrokerError, type Connection, Deadlines, Delay, Timers } from "@requeue/core/adapter-kit"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../NsqOptions.ts"
import * as Link from "./connection.ts"
import type { Lookup } from "./lookup.ts"
import type { Node, Nodes } from "./nodes.ts"
import * as Outlet from "../publish/publisher.ts"
import * as Presence from "./connectionCount.ts"

export interface Pool {
  /** So many live connections to different nsqd, the preferred one first if it is well; or an error after a time. */
  readonly pick: (count: number, prefer?: Node) => Effect.Effect<ReadonlyArray<Outlet.Outlet>, BrokerError.BrokerError>
  /** The same when all of the first choice are well now, as nearly always; else `undefined`. */
  readonly ready: (count: number, prefer?: Node) => ReadonlyArray<Outlet.Outlet> | undefined
  /** The nsqd that may be published to, the first choice first. */
  readonly candidates: () => ReadonlyArray<Node>
  /** Whether there is an nsqd to publish to. */
  readonly state: () => Connection.Connection
}

/** How long the start waits for further nsqd when one is well. */
const patience = Duration.seconds(1)

export const nobody = (settings: Settings): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: "connect",
    reason: "ConnectionFailed",
    detail: `no nsqd is registered with ${settings.lookupd.join(", ")}, or none of them answers`,
    remedy: "Start nsqd with --lookupd-tcp-address, check lookupd, or give nsqd"
  })

/** Connects to the first nsqd that is well; fails when none is. */
export const make = (
  settings: Settings,
  nodes: Nodes,
  lookup: Lookup
): Effect.Effect<Pool, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const presence = Presence.make(() => clock.currentTimeMillisUnsafe())
    const scope = yield* Effect.scope
    const one = yield* Semaphore.make(1)
    const deadlines = Deadlines.make(yield* Timers.make, settings.publishTimeout)
    const links = new Map<Node, { readonly link: Link.Link<Outlet.Outlet>; readonly scope: Scope.Closeable }>()
    let candidates = nodes.given

    const linkTo = (node: Node): Effect.Effect<Link.Link<Outlet.Outlet>> =>
      one.withPermits(1)(
        Effect.suspend(() => {
          const found = links.get(node)
          if (found !== undefined) return Effect.succeed(found.link)
          return Effect.gen(function* () {
            const own = yield* Scope.fork(scope)
            const name = { nsqd: node.name, role: "publish" }
            const link = yield* Scope.provide(
              Link.make(name, Outlet.open(node, nodes, settings, deadlines), settings, presence),
              own
            )
            links.set(node, { link, scope: own })
            return link
          })
        })
      )

    /** Nobody connects again to an nsqd that is down and that nobody knows. */
    const forget = Effect.suspend(() => {
      const gone = [...links].filter(([node, { link }]) => !candidates.includes(node) && link.current() === undefined)
      return Effect.forEach(
        gone,
        ([node, { scope: own }]) => {
          links.delete(node)
          return Scope.close(own, Exit.void)
        },
        { discard: true }
      )
    })

    /** Those found now, the known ones in the order in which they were: nobody changes nsqd without need. */
    const discover = Effect.gen(function* () {
      const found = yield* lookup.all
      if (found === undefined) return
      const mixed = yield* Random.shuffle(found.map(nodes.at))
      const known = candidates.filter((node) => mixed.includes(node))
      candidates = [...known, ...mixed.filter((node) => !known.includes(node))]
      yield* forget
    })
    if (nodes.given.length === 0) {
      yield* discover
      if (candidates.length === 0) return yield* nobody(settings)
      const every = Schedule.jittered(Schedule.spaced(Duration.millis(settings.lookupdInterval)))
      yield* Effect.forkScoped(Effect.schedule(discover, every))
    }

    /** Goes through them in order; answers why those that are not well are not. */
    const gather = (count: number, from: ReadonlyArray<Node>) =>
      Effect.gen(function* () {
        const well: Array<Outlet.Outlet> = []
        const errors: Array<BrokerError.BrokerError> = []
        for (const node of from) {
          if (well.length === count) break
          const link = yield* linkTo(node)
          const error = yield* link.tried
          const outlet = link.current()
          if (outlet !== undefined) well.push(outlet)
          else if (error !== undefined) errors.push(error)
        }
        return { well, errors }
      })

    const inOrder = (prefer: Node | undefined): ReadonlyArray<Node> =>
      prefer === undefined ? candidates : [prefer, ...candidates.filter((node) => node !== prefer)]

    const ready: Pool["ready"] = (count, prefer) => {
      const well: Array<Outlet.Outlet> = []
      for (const node of inOrder(prefer)) {
        if (well.length === count) break
        const outlet = links.get(node)?.link.current()
        if (outlet === undefined) return undefined
        well.push(outlet)
      }
      return well.length === count ? well : undefined
    }

    const pick: Pool["pick"] = (count, prefer) => {
      let seen:
        | { readonly well: ReadonlyArray<Outlet.Outlet>; readonly errors: ReadonlyArray<BrokerError.BrokerError> }
        | undefined
      const attempt: Effect.Effect<ReadonlyArray<Outlet.Outlet>> = Effect.suspend(() => {
        return Effect.flatMap(gather(count, inOrder(prefer)), (result) => {
          seen = result
          if (result.well.length >= count) return Effect.succeed(result.well)
          const missing = [...links.values()].map(({ link }) => link).filter((link) => link.current() === undefined)
          // Whichever comes first; found ones may come without any of these.
          const next = Effect.raceAllFirst([...missing.map(({ live }) => Effect.asVoid(live)), Effect.sleep(1000)])
          return Effect.andThen(next, attempt)
        })
      })
      return Effect.timeoutOrElse(attempt, {
        duration: Duration.millis(settings.publishTimeout),
        orElse: () => Effect.fail(notReady(count, seen?.well.length ?? 0, seen?.errors[0], settings))
      })
    }

    // What all of them allow is to be known from the start; those that do not answer are not waited for.
    const others = Effect.forEach(nodes.given, (node) => Effect.flatMap(linkTo(node), ({ tried }) => tried), {
      concurrency: "unbounded"
    })
    const first = yield* gather(1, candidates)
    if (first.well.length === 0) return yield* first.errors[0] ?? nobody(settings)
    yield* Effect.timeoutOption(others, patience)
    /** There is a connection as long as there is an nsqd, also while nobody publishes. */
    const stay = Effect.flatMap(pick(1), ([outlet]) => Deferred.await(outlet!.gone))
    yield* Effect.forkScoped(Effect.forever(Effect.ignore(stay)))
    return { pick, ready, candidates: () => candidates, state: presence.state }
  })

const notReady = (
  wanted: number,
  got: number,
  because: BrokerError.BrokerError | undefined,
  { publishTimeout }: Settings
): BrokerError.BrokerError => {
  const many = wanted === 1 ? "no nsqd" : `${got} of ${wanted} nsqd`
  const detail = `${many} could be reached within ${Delay.format(publishTimeout)}`
  return new BrokerError.BrokerError({
    broker: "nsq",
    operation: "publish",
    reason: "ConnectionFailed",
    detail: because === undefined ? detail : `${detail}: ${because.detail}`,
    remedy: because?.remedy
  })
}
