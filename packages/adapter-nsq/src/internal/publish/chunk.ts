/** Stores a chunk of messages, each on the requested number of nsqd. */
import { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { isSame, type Node } from "../connect/nodes.ts"
import type { Publishing } from "../connect/publishing.ts"
import type { Outcomes } from "./outcomes.ts"
import type { Publisher } from "./publisher.ts"
import * as Storing from "./storing.ts"
import type { Item } from "./toPublication.ts"

/** The number of nsqd that store a message, and the preferred one. */
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
  /** Limits the time of an effect that waits. */
  readonly inTime: (sent: Sent) => Sent
}

export interface Chunks {
  /** Stores messages. `chosen`: the nsqd for them, if already known. */
  readonly send: (chunk: Chunk, chosen?: ReadonlyArray<Publisher>) => Sent
  /** Stores messages on these nsqd by a `first` try, and unstored ones on others. */
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
    /** The nsqd of each copy, all different. */
    const homes = publishers.map(({ node }) => node)
    return each(publishers, (publisher, copy) => {
      const another = Effect.map(publishing.pick(count, prefer), (up) => {
        const found = up.find(({ node }) => homes.every((home, other) => other === copy || !isSame(home, node)))!
        homes[copy] = found.node
        return found
      })
      // Each alone: a message in the same command may have caused the failure.
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
        // A refused message fails the chunk before any of it is written.
        const made = Storing.allOrNone(Storing.toPublications(items, dependencies))
        if (made instanceof BrokerError.BrokerError) return Effect.fail(made)
        const ready = chosen ?? publishing.ready(placement.count, placement.prefer)
        const isDeclared = ({ node }: Publisher) => items.every(({ target }) => declare.isDone(node, target))
        // If nothing has to wait, the publisher's timer suffices: it also ends a connection without answers.
        if (ready?.every(isDeclared) === true && made.every(({ defer }) => defer === 0)) {
          return storeOn(chunk, ready, (publisher) => write(publisher, items, outcomes, { areAlone: false, made }))
        }
        // Another pick would skip an nsqd.
        const picked = ready === undefined ? publishing.pick(placement.count, placement.prefer) : Effect.succeed(ready)
        // Encoded later: after a wait, delays are shorter, and another nsqd may have lower limits.
        return Effect.flatMap(picked, (publishers) =>
          inTime(storeOn(chunk, publishers, (publisher) => write(publisher, items, outcomes, { areAlone: false })))
        )
      })
  }
}

/**
 * Runs `run` for each publisher at the same time, and waits for all: an interrupted run could not report what it
 * stored.
 */
const each = (publishers: ReadonlyArray<Publisher>, run: (publisher: Publisher, index: number) => Sent): Sent =>
  publishers.length === 1
    ? run(publishers[0]!, 0)
    : Effect.flatMap(
        Effect.forEach(publishers, (publisher, index) => Effect.result(run(publisher, index)), {
          concurrency: "unbounded"
        }),
        (results) => Effect.fromResult(results.find(Result.isFailure) ?? Result.succeed(undefined))
      )
