/** The nsqd to which messages may be published. */
import { BrokerError, Random } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../NsqOptions.ts"
import type { Lookup } from "./lookup.ts"
import type { Node, Nodes } from "./nodes.ts"

/** Makes the error when nsqlookupd reports no nsqd, or does not answer. */
export const noneFound = (
  { lookupd }: Settings,
  failures: ReadonlyArray<BrokerError.BrokerError> = []
): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: "connect",
    reason: "ConnectionFailed",
    detail:
      failures.length === 0
        ? `no nsqd is registered with ${lookupd.map(({ url }) => url).join(", ")} that can be used`
        : `no nsqd is known: ${failures.map(({ detail }) => detail).join("; ")}`,
    remedy:
      failures[0]?.remedy ??
      "Start nsqd with --lookupd-tcp-address, check lookupd, or give nsqd. nsqlookupd knows those that run 15 seconds after its start"
  })

/** How often in a row nsqlookupd may omit a disconnected nsqd: it does not know a restarting one for a moment. */
export const maxAbsences = 2

/**
 * Returns the nsqd of the options in their order, or those that nsqlookupd reports, in a random order for each process.
 * Asks nsqlookupd every `lookupdInterval`, and calls `changed` after each answer. Fails if it knows no nsqd at the
 * start.
 *
 * An nsqd that it no longer reports stays while it is connected: a restarted nsqlookupd knows no nsqd for up to 15
 * seconds.
 */
export const make = (
  settings: Settings,
  nodes: Nodes,
  lookup: Lookup,
  isUp: (node: Node) => boolean,
  changed: (candidates: ReadonlyArray<Node>) => Effect.Effect<void>
): Effect.Effect<() => ReadonlyArray<Node>, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    if (nodes.given.length > 0) return () => nodes.given
    let candidates: ReadonlyArray<Node> = []
    const absences = new Map<Node, number>()

    /** Known nodes keep their order, so a process does not change its nsqd unnecessarily. */
    const discover = Effect.gen(function* () {
      const { failures, nsqd } = yield* lookup.all
      if (nsqd === undefined) return failures
      const named = yield* Random.shuffle(nsqd.map(nodes.at))
      for (const node of candidates) absences.set(node, named.includes(node) ? 0 : (absences.get(node) ?? 0) + 1)
      const kept = candidates.filter((node) => absences.get(node)! < maxAbsences || isUp(node))
      candidates = [...kept, ...named.filter((node) => !kept.includes(node))]
      for (const node of absences.keys()) if (!candidates.includes(node)) absences.delete(node)
      yield* changed(candidates)
      return failures
    })
    const failures = yield* discover
    if (candidates.length === 0) return yield* noneFound(settings, failures)
    nodes.used.add(() => candidates.map((node) => ({ node, isUp: isUp(node) })))
    const every = Schedule.jittered(Schedule.spaced(Duration.millis(settings.lookupdInterval)))
    yield* Effect.forkScoped(Effect.schedule(discover, every))
    return () => candidates
  })
