/** Stores messages on one nsqd, and unstored ones on others. */
import { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Settings } from "../../NsqOptions.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import type { Declare } from "../declare/declare.ts"
import type { Outcomes } from "./outcomes.ts"
import * as Publisher from "./publisher.ts"
import type { Room } from "./room.ts"
import { type Item, toPublication } from "./toPublication.ts"

/** How often a message is written if its connection is lost before the answer. */
const rounds = 3

export interface StoringDependencies {
  readonly settings: Settings
  readonly nodes: Nodes
  readonly declare: Declare
  /** The room of written messages. */
  readonly room: Room
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Encodes messages for nsqd; an error in place of one that cannot be published. */
export const toPublications = (
  items: ReadonlyArray<Item>,
  { nodes, now, settings: { envelope } }: StoringDependencies
): ReadonlyArray<Publisher.Publication | BrokerError.BrokerError> => {
  const context = { limits: nodes.limits(), envelope, now: now() }
  return items.map((item) => toPublication(item, context))
}

/** Returns all messages, or the error of one that cannot be published. */
export const allOrNone = <A>(
  made: ReadonlyArray<A | BrokerError.BrokerError>
): ReadonlyArray<A> | BrokerError.BrokerError =>
  made.find((each) => each instanceof BrokerError.BrokerError) ?? (made as ReadonlyArray<A>) // none is an error

/** Stores messages that an earlier round did not store, on any nsqd that is up. */
export type StoreRest = (items: ReadonlyArray<Item>, round: number) => Effect.Effect<void, BrokerError.BrokerError>

/** nsqd's answers to messages. */
export type Results = Effect.Effect<ReadonlyArray<Publisher.PublishResult>, BrokerError.BrokerError>

/** Writes messages to nsqd once their topics and channels exist. */
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
        // When messages are written again, a refused one does not stop the others.
        const publications = areAlone ? each : allOrNone(each)
        if (publications instanceof BrokerError.BrokerError) return Effect.fail(publications)
        outcomes.written(items.filter((_, index) => !(publications[index] instanceof BrokerError.BrokerError)))
        return Publisher.send(publisher, publications, areAlone, room)
      })
    )
}

/**
 * Succeeds when all messages with these results are stored. Stores `again` each message that nsqd has not read, and
 * each one whose connection broke after it was written: that one may be stored twice, with the same id.
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
