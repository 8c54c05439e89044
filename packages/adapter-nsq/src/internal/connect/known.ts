/**
 * The known nsqd: from the options, from nsqlookupd, and those in use. A restarted nsqlookupd knows no nsqd for up to
 * 15 seconds, and then learns each nsqd before its topics.
 */
import { type BrokerError, Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../NsqOptions.ts"
import { Driver } from "../client.ts"
import * as Candidates from "./candidates.ts"
import * as Lookup from "./lookup.ts"
import * as Nodes from "./nodes.ts"
import { distinct, type Node } from "./nodes.ts"

export interface KnownDependencies {
  readonly settings: Settings
  readonly driver: Driver
  readonly nodes: Nodes.Nodes
  readonly lookup: Lookup.Lookup
}

/** Takes the driver from the context, and makes what finds nsqd with it. `elapsed` returns monotonic milliseconds. */
export const make = (
  settings: Settings
): Effect.Effect<KnownDependencies & { readonly elapsed: () => number }, never, Scope.Scope> =>
  Effect.gen(function* () {
    const driver = yield* Driver
    const { now: elapsed } = yield* Timers.make
    return {
      settings,
      driver,
      elapsed,
      nodes: Nodes.make(settings, driver, elapsed),
      lookup: Lookup.make(settings, driver)
    }
  })

export interface Known {
  /** The nsqd to ask about each topic, in the order of the topics. */
  readonly having: ReadonlyArray<ReadonlyArray<Node>>
  /** All nsqd that nsqlookupd reports. */
  readonly named: ReadonlyArray<Node>
  /** Why further nsqd may be unknown. */
  readonly missing: ReadonlyArray<BrokerError.BrokerError>
}

/** Returns the nsqd to which this process is connected, and those that it uses but nsqlookupd does not report. */
const keptBeside = ({ used }: Nodes.Nodes, named: ReadonlyArray<Node>): ReadonlyArray<Node> =>
  [...used]
    .flatMap((each) => each())
    .filter(({ isUp, node }) => isUp || !named.includes(node))
    .map(({ node }) => node)

const namedIn = ({ nsqd = [] }: Lookup.Found, { at }: Nodes.Nodes): ReadonlyArray<Node> => nsqd.map(at)

/** Returns the nsqd that count whatever nsqlookupd reports about their topics, without those of the options. */
export const kept = ({
  lookup,
  nodes
}: Pick<KnownDependencies, "lookup" | "nodes">): Effect.Effect<ReadonlyArray<Node>> =>
  Effect.map(lookup.all, (found) => [...new Set(keptBeside(nodes, namedIn(found, nodes)))])

/** Learns which of these are addresses of the same nsqd, to count it once. */
const identify = (nodes: Nodes.Nodes, all: ReadonlyArray<Node>): Effect.Effect<void> =>
  all.length < 2 ? Effect.void : nodes.identify(all)

/** Returns the nsqd that may have these topics. Fails if only nsqlookupd could find nsqd, and there are none. */
export const of = (
  { lookup, nodes, settings }: KnownDependencies,
  topics: ReadonlyArray<string>
): Effect.Effect<Known, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { given } = nodes
    if (settings.lookupd.length === 0) {
      yield* identify(nodes, given)
      return { having: topics.map(() => distinct(given)), named: [], missing: [] }
    }
    const { all, found } = yield* Effect.all(
      { all: lookup.all, found: Effect.forEach(topics, lookup.topic, { concurrency: "unbounded" }) },
      { concurrency: "unbounded" }
    )
    const named = namedIn(all, nodes)
    const always = [...given, ...keptBeside(nodes, named)]
    if (always.length === 0 && named.length === 0) return yield* Candidates.noneFound(settings, all.failures)
    const having = found.map((each) => [...new Set([...always, ...namedIn(each, nodes)])])
    yield* identify(nodes, [...new Set(having.flat())])
    return {
      having: having.map(distinct),
      named,
      missing: [all, ...found].find(({ nsqd }) => nsqd === undefined)?.failures ?? []
    }
  })
