/** Stores some messages, each on as many nsqd as it is to be on. */
import { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { isSame, type Node } from "../connect/nodes.ts"
import type { Publishing } from "../connect/publishing.ts"
import type { Outcomes } from "./outcomes.ts"
import type { Publisher } from "./publisher.ts"
import * as Storing from "./storing.ts"
import type { Item } from "./toPublication.ts"

/** On how many nsqd a message is stored, and which of them is the first choice. */
export interface Placement {
  readonly count: number
  readonly prefer?: Node
}

export type Sent = Effect.Effect<void, BrokerError.BrokerError>

/** Messages that are sent together. */
export interface Chunk {
  readonly items: ReadonlyArray<Item>
  readonly placement: Placement
  readonly outcomes: Outcomes
  /** Limits what they wait for. */
  readonly inTime: (sent: Sent) => Sent
}

export interface Chunks {
  /** Stores messages. `chosen`: the nsqd on which they are to be stored, where that is known. */
  readonly send: (chunk: Chunk, chosen?: ReadonlyArray<Publisher>) => Sent
  /** Stores messages on these nsqd, and on others what those have not stored by the results of the `first` try. */
  readonly storeOn: (
    chunk: Chunk,
    publishers: ReadonlyArray<Publisher>,
    first: (publisher: Publisher) => Storing.Results
  ) => Sent
}

export interface ChunksDependencies extends Storing.StoringDependencies {
  readonly publishing: Publishing
}

export const make = (dependencies: ChunksDependencies): Chunks => {
  const { declare, publishing } = dependencies
  const write = Storing.writing(dependencies)

  const storeOn: Chunks["storeOn"] = ({ inTime, items, outcomes, placement: { count, prefer } }, publishers, first) => {
    /** The nsqd of each copy: no two are stored on the same one. */
    const homes = publishers.map(({ node }) => node)
    return each(publishers, (publisher, copy) => {
      const another = Effect.map(publishing.pick(count, prefer), (up) => {
        const found = up.find(({ node }) => homes.every((home, other) => other === copy || !isSame(home, node)))!
        homes[copy] = found.node
        return found
      })
      // Each alone: a neighbour may be why they were not stored.
      const storeAgain: Storing.StoreRest = (some, round) =>
        Effect.flatMap(another, (other) =>
          Storing.stored(write(other, some, outcomes, { areAlone: true }), some, storeAgain, round, outcomes)
        )
      return Storing.stored(first(publisher), items, (some, round) => inTime(storeAgain(some, round)), 1, outcomes)
    })
  }

  return {
    storeOn,
    send: (chunk, chosen) =>
      Effect.suspend(() => {
        const { inTime, items, outcomes, placement } = chunk
        // A message that is refused fails the chunk before any of it is written.
        const made = Storing.allOrNone(Storing.toPublications(items, dependencies))
        if (made instanceof BrokerError.BrokerError) return Effect.fail(made)
        const ready = chosen ?? publishing.ready(placement.count, placement.prefer)
        const isDeclared = ({ node }: Publisher) => items.every(({ target }) => declare.isDone(node, target))
        // What waits for nothing needs no timer beside that of the publisher, which ends a connection without answers as well.
        if (ready?.every(isDeclared) === true && made.every(({ defer }) => defer === 0)) {
          return storeOn(chunk, ready, (publisher) => write(publisher, items, outcomes, { areAlone: false, made }))
        }
        // Another pick would take the turn of another nsqd.
        const picked = ready === undefined ? publishing.pick(placement.count, placement.prefer) : Effect.succeed(ready)
        // After a wait, delays are shorter, and the limits of another nsqd may be lower.
        return Effect.flatMap(picked, (publishers) =>
          inTime(storeOn(chunk, publishers, (publisher) => write(publisher, items, outcomes, { areAlone: false })))
        )
      })
  }
}

/** Runs one after each other's start, and lets all of them end: what is interrupted cannot tell what it has stored. */
const each = (publishers: ReadonlyArray<Publisher>, run: (publisher: Publisher, index: number) => Sent): Sent =>
  publishers.length === 1
    ? run(publishers[0]!, 0)
    : Effect.flatMap(
        Effect.forEach(publishers, (publisher, index) => Effect.result(run(publisher, index)), {
          concurrency: "unbounded"
        }),
        (results) => Effect.fromResult(results.find(Result.isFailure) ?? Result.succeed(undefined))
      )
