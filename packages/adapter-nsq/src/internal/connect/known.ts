/**
 * Which nsqd are known: those of the options, those that nsqlookupd names, and those in use. An nsqlookupd that has restarted
 * knows nobody for up to 15 seconds, and then each nsqd before its topics.
 */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Settings } from "../../NsqOptions.ts"
import * as Candidates from "./candidates.ts"
import type { Found, Lookup } from "./lookup.ts"
import { distinct, type Node, type Nodes } from "./nodes.ts"

export interface KnownDependencies {
  readonly settings: Settings
  readonly nodes: Nodes
  readonly lookup: Lookup
}

export interface Known {
  /** Those to ask about each topic, in the order of the topics. */
  readonly having: ReadonlyArray<ReadonlyArray<Node>>
  /** All that nsqlookupd names. */
  readonly named: ReadonlyArray<Node>
  /** Why it is not known which others there are. */
  readonly missing: ReadonlyArray<BrokerError.BrokerError>
}

/** The nsqd that this process is connected to, and those that it uses and nsqlookupd does not name. */
const keptBeside = ({ used }: Nodes, named: ReadonlyArray<Node>): ReadonlyArray<Node> =>
  [...used]
    .flatMap((each) => each())
    .filter(({ isUp, node }) => isUp || !named.includes(node))
    .map(({ node }) => node)

const namedIn = ({ nsqd = [] }: Found, { at }: Nodes): ReadonlyArray<Node> => nsqd.map(at)

/** The nsqd that count whatever nsqlookupd says of their topics, beside those of the options. */
export const kept = ({
  lookup,
  nodes
}: Pick<KnownDependencies, "lookup" | "nodes">): Effect.Effect<ReadonlyArray<Node>> =>
  Effect.map(lookup.all, (found) => [...new Set(keptBeside(nodes, namedIn(found, nodes)))])

/** Learns which of these are addresses of one nsqd, which would count several times. */
const identify = (nodes: Nodes, all: ReadonlyArray<Node>): Effect.Effect<void> =>
  all.length < 2 ? Effect.void : nodes.identify(all)

/** The nsqd that may have these topics. Fails when nsqd are found by nsqlookupd, and there are none. */
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
