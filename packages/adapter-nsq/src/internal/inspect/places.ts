/** The channels of a queue on each nsqd. An nsqd that does not answer does not affect the others. */
import { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Known from "../connect/known.ts"
import type { Node } from "../connect/nodes.ts"
import * as Http from "../http.ts"
import type { Queue } from "../names.ts"
import * as Names from "../names.ts"
import { target } from "../publish/sender.ts"

export type PlacesDependencies = Known.KnownDependencies

/** A channel of the queue on one nsqd, whose HTTP interface is at `http`. */
export interface Place {
  readonly node: Node
  readonly http: NonNullable<Node["address"]["http"]>
  readonly queue: Queue
}

/** All known places. */
export interface Places extends Pick<Known.Known, "missing"> {
  readonly all: ReadonlyArray<Place>
}

/** The answer of each place, and one error for each nsqd that has not answered. */
export interface Answers<A> {
  readonly answers: ReadonlyArray<{ readonly place: Place; readonly answer: A }>
  readonly missing: ReadonlyArray<BrokerError.BrokerError>
}

/** Returns the places of a queue and of its retries. */
export const of = (
  dependencies: PlacesDependencies,
  name: string,
  operation: string
): Effect.Effect<Places, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { settings } = dependencies
    const source = target(name, operation, settings)
    if (source instanceof BrokerError.BrokerError) return yield* source
    if (!settings.http) return yield* Http.needed(operation, name)
    const queues = [source, Names.retry(source)]
    const { having, missing } = yield* Known.of(
      dependencies,
      Array.from(queues, ({ topic }) => topic)
    )
    const all = queues.flatMap((queue, index) =>
      having[index]!.flatMap((node) => {
        const { http } = node.address
        return http === undefined ? [] : [{ node, http, queue }]
      })
    )
    return { all, missing }
  })

/** Makes the error of an nsqd, for any queue. */
const away = ({ node }: Place, { detail, operation, reason }: BrokerError.BrokerError) =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation,
    reason,
    detail: `nsqd ${node.name} has not answered: ${detail}`,
    remedy: "Start this nsqd, or give the address of its HTTP interface in nsqdHttp"
  })

/** Asks every place. Fails if none answers. */
export const ask = <A>(
  { all, missing: unknown }: Places,
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
    const missing = [...errors.values(), ...unknown]
    const [first] = missing
    return first !== undefined && answers.length === 0 ? yield* first : { answers, missing }
  })
