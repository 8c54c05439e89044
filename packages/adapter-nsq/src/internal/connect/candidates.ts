/** The nsqd that may be published to. */
import { BrokerError } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../NsqOptions.ts"
import type { Lookup } from "./lookup.ts"
import type { Node, Nodes } from "./nodes.ts"

/** The error of a start where nsqlookupd knows no nsqd. */
export const noneFound = (settings: Settings): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: "connect",
    reason: "ConnectionFailed",
    detail: `no nsqd is registered with ${settings.lookupd.join(", ")}, or none of them answers`,
    remedy: "Start nsqd with --lookupd-tcp-address, check lookupd, or give nsqd"
  })

/**
 * The nsqd of the options in their order, or those that nsqlookupd knows, which every process has in another order. Asks
 * nsqlookupd every `lookupdInterval`, and calls `changed` after each answer. Fails when it knows no nsqd at the start.
 */
export const make = (
  settings: Settings,
  nodes: Nodes,
  lookup: Lookup,
  changed: (candidates: ReadonlyArray<Node>) => Effect.Effect<void>
): Effect.Effect<() => ReadonlyArray<Node>, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    if (nodes.given.length > 0) return () => nodes.given
    let candidates: ReadonlyArray<Node> = []

    /** Nodes that were known keep their order: no process changes its nsqd without need. */
    const discover = Effect.gen(function* () {
      const found = yield* lookup.all
      if (found === undefined) return
      const shuffled = yield* Random.shuffle(found.map(nodes.at))
      const known = candidates.filter((node) => shuffled.includes(node))
      candidates = [...known, ...shuffled.filter((node) => !known.includes(node))]
      yield* changed(candidates)
    })
    yield* discover
    if (candidates.length === 0) return yield* noneFound(settings)
    const every = Schedule.jittered(Schedule.spaced(Duration.millis(settings.lookupdInterval)))
    yield* Effect.forkScoped(Effect.schedule(discover, every))
    return () => candidates
  })
