/**
 * Which nsqd are known: those of the options, those that nsqlookupd names, and those that this process uses and nsqlookupd
 * does not name at all, since one that has restarted knows nobody for up to 15 seconds.
 */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Settings } from "../../NsqOptions.ts"
import * as Candidates from "./candidates.ts"
import type { Found, Lookup } from "./lookup.ts"
import type { Node, Nodes } from "./nodes.ts"

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

/** The nsqd that this process uses, and that are none of these. */
const usedBeside = ({ used }: Nodes, named: ReadonlyArray<Node>): ReadonlyArray<Node> =>
  [...new Set([...used].flatMap((each) => each()))].filter((node) => !named.includes(node))

const namedIn = ({ nsqd = [] }: Found, { at }: Nodes): ReadonlyArray<Node> => nsqd.map(at)

/** The nsqd that this process uses and nsqlookupd does not name. */
export const unnamed = ({
  lookup,
  nodes
}: Pick<KnownDependencies, "lookup" | "nodes">): Effect.Effect<ReadonlyArray<Node>> =>
  Effect.map(lookup.all, (found) => usedBeside(nodes, namedIn(found, nodes)))

/** The nsqd that may have these topics. Fails when nsqd are found by nsqlookupd, and there are none. */
export const of = (
  { lookup, nodes, settings }: KnownDependencies,
  topics: ReadonlyArray<string>
): Effect.Effect<Known, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { given } = nodes
    if (settings.lookupd.length === 0) return { having: topics.map(() => given), named: [], missing: [] }
    const { all, found } = yield* Effect.all(
      { all: lookup.all, found: Effect.forEach(topics, lookup.topic, { concurrency: "unbounded" }) },
      { concurrency: "unbounded" }
    )
    const named = namedIn(all, nodes)
    const kept = [...given, ...usedBeside(nodes, named)]
    if (kept.length === 0 && named.length === 0) return yield* Candidates.noneFound(settings, all.failures)
    return {
      having: found.map((each) => [...new Set([...kept, ...namedIn(each, nodes)])]),
      named,
      missing: [all, ...found].find(({ nsqd }) => nsqd === undefined)?.failures ?? []
    }
  })
