/** The channels of a queue, nsqd by nsqd; one that does not answer leaves the others as they are. */
import { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Settings } from "../../NsqOptions.ts"
import * as Candidates from "../connect/candidates.ts"
import type { Lookup } from "../connect/lookup.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import * as Http from "../http.ts"
import type { Queue } from "../names.ts"
import * as Names from "../names.ts"
import { target } from "../publish/sender.ts"

export interface PlacesDependencies {
  readonly settings: Settings
  readonly nodes: Nodes
  readonly lookup: Lookup
}

/** A channel of the queue on one nsqd, whose HTTP interface is at `http`. */
export interface Place {
  readonly node: Node
  readonly http: NonNullable<Node["address"]["http"]>
  readonly queue: Queue
}

/** The answer of each place that has answered, and why the nsqd of the others have not, each once. */
export interface Answers<A> {
  readonly answers: ReadonlyArray<{ readonly place: Place; readonly answer: A }>
  readonly missing: ReadonlyArray<BrokerError.BrokerError>
}

/** The places of a queue and of its retries, on the nsqd of the options and on those that nsqlookupd knows. */
export const of = (
  { lookup, nodes, settings }: PlacesDependencies,
  name: string,
  operation: string
): Effect.Effect<ReadonlyArray<Place>, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const source = yield* target(name, operation, settings)
    if (!settings.http) return yield* Http.needed(operation, name)
    const all: Array<Place> = []
    for (const queue of [source, Names.retry(source)]) {
      const found = settings.lookupd.length === 0 ? [] : yield* lookup.topic(queue.topic)
      // Without an answer it is not known that there are none.
      if (found === undefined && nodes.given.length === 0) return yield* Candidates.noneFound(settings)
      for (const node of new Set([...nodes.given, ...(found ?? []).map(nodes.at)])) {
        const { http } = node.address
        if (http !== undefined) all.push({ node, http, queue })
      }
    }
    return all
  })

/** The error of an nsqd, whatever the queue. */
const away = ({ node }: Place, { detail, operation, reason }: BrokerError.BrokerError) =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation,
    reason,
    detail: `nsqd ${node.name} has not answered: ${detail}`,
    remedy: "Start it again, or give the address of its HTTP interface in nsqdHttp"
  })

/** Asks every place. Fails when none of them answers. */
export const ask = <A>(
  all: ReadonlyArray<Place>,
  one: (place: Place) => Effect.Effect<A, BrokerError.BrokerError>
): Effect.Effect<Answers<A>, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const errors = new Map<Node, BrokerError.BrokerError>()
    const answered = yield* Effect.forEach(
      all,
      (place) =>
        Effect.matchEager(one(place), {
          onSuccess: (answer) => [{ place, answer }],
          onFailure: (error) => {
            if (!errors.has(place.node)) errors.set(place.node, away(place, error))
            return []
          }
        }),
      { concurrency: "unbounded" }
    )
    const answers = answered.flat()
    const missing = [...errors.values()]
    const [first] = missing
    return first !== undefined && answers.length === 0 ? yield* first : { answers, missing }
  })
