/** Stores messages on one nsqd, and on others what that does not store. */
import { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Settings } from "../../NsqOptions.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import type { Declare } from "../declare/declare.ts"
import type { Outcomes } from "./outcomes.ts"
import * as Publisher from "./publisher.ts"
import type { Room } from "./room.ts"
import { type Item, toPublication } from "./toPublication.ts"

/** How often a message is written whose connection is lost before the answer. */
const rounds = 3

export interface StoringDependencies {
  readonly settings: Settings
  readonly nodes: Nodes
  readonly declare: Declare
  /** The room that messages have which are written. */
  readonly room: Room
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** The messages for nsqd; the reason, instead of one that cannot be published. */
export const toPublications = (
  items: ReadonlyArray<Item>,
  { nodes, now, settings: { envelope } }: StoringDependencies
): ReadonlyArray<Publisher.Publication | BrokerError.BrokerError> => {
  const context = { limits: nodes.limits(), envelope, now: now() }
  return items.map((item) => toPublication(item, context))
}

/** The messages, or the reason why one of them cannot be published. */
export const allOrNone = <A>(
  made: ReadonlyArray<A | BrokerError.BrokerError>
): ReadonlyArray<A> | BrokerError.BrokerError =>
  made.find((each) => each instanceof BrokerError.BrokerError) ?? (made as ReadonlyArray<A>) // none is an error

/** Stores messages that were not stored in an earlier round, on any nsqd that is up. */
export type StoreRest = (items: ReadonlyArray<Item>, round: number) => Effect.Effect<void, BrokerError.BrokerError>

/** Answers of nsqd to messages. */
export type Results = Effect.Effect<ReadonlyArray<Publisher.PublishResult>, BrokerError.BrokerError>

/** Writes messages to nsqd, when their topics and channels are there. Without answer to that, nothing is written yet. */
export const writing = (dependencies: StoringDependencies) => {
  const { declare, room } = dependencies
  const ensure = (node: Node, items: ReadonlyArray<Item>): Effect.Effect<void, BrokerError.BrokerError> =>
    items.length === 1
      ? declare(node, items[0]!.target)
      : Effect.forEach(new Set(items.map(({ target: queue }) => queue)), (queue) => declare(node, queue), {
          discard: true
        })

  return (
    publisher: Publisher.Publisher,
    items: ReadonlyArray<Item>,
    outcomes: Outcomes,
    { areAlone, made }: { readonly areAlone: boolean; readonly made?: ReadonlyArray<Publisher.Publication> | undefined }
  ): Results =>
    Effect.andThen(
      ensure(publisher.node, items),
      Effect.suspend(() => {
        const each = made ?? toPublications(items, dependencies)
        // Of what is written again, a message that is refused does not keep the others back.
        const publications = areAlone ? each : allOrNone(each)
        if (publications instanceof BrokerError.BrokerError) return Effect.fail(publications)
        outcomes.written(items.filter((_, index) => !(publications[index] instanceof BrokerError.BrokerError)))
        return Publisher.send(publisher, publications, areAlone, room)
      })
    )
}

/**
 * Succeeds when all messages are stored that have had these results. A message that nsqd has not read is stored `again`. So is
 * one that was written when its connection broke: it may then be stored twice, with the same id.
 */
export const stored = (
  results: Results,
  items: ReadonlyArray<Item>,
  again: StoreRest,
  round: number,
  outcomes: Outcomes
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.flatMap(results, (all) => {
    for (const [index, item] of items.entries()) outcomes.answered(item, all[index]!)
    if (all.every((result) => result === "Stored")) return Effect.void
    const errors = all.filter((result) => result instanceof BrokerError.BrokerError)
    const lost = errors.find(isLost)
    const refused = errors.find((error) => !isLost(error))
    const unstored = items.filter((_, index) => isUnstored(all[index]!))
    const rest =
      unstored.length === 0
        ? Effect.void
        : lost === undefined
          ? again(unstored, round)
          : round === rounds
            ? Effect.fail(lost)
            : again(unstored, round + 1)
    return refused === undefined ? rest : Effect.andThen(rest, Effect.fail(refused))
  })

/** Whether the connection was lost before the answer. */
const isLost = ({ reason }: BrokerError.BrokerError): boolean => reason === "ConnectionLost"

/** Whether nsqd has not read the message, or the connection was lost before its answer. */
const isUnstored = (result: Publisher.PublishResult): boolean =>
  result === "Unread" || (result instanceof BrokerError.BrokerError && isLost(result))
