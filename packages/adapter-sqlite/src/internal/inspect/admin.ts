/** The operators' view of a queue. */
import { Backlog, type Broker, type BrokerError, Metadata } from "@requeue/core/port"
import { SqlMessage } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type { Connection } from "../connect/connection.ts"
import type { Store } from "../connect/store.ts"
import * as Rows from "../rows.ts"
import { open } from "./browse.ts"

/** The most messages that one transaction removes. */
const maxPurge = 500

const countsOf = (connection: Connection, queue: string, now: number) => ({
  ...Rows.count(connection, queue, now),
  ...(Rows.exists(connection, queue) ? {} : { isMissing: true })
})

const backlogOf = (connection: Connection, queue: string, now: number): Backlog.Backlog => {
  const first = Rows.oldest(connection, queue, now)
  const published = first && Metadata.publishedAt(SqlMessage.toDelivery(first, "sqlite").metadata)
  return {
    ...countsOf(connection, queue, now),
    backoff: Backlog.group(Rows.dues(connection, queue, now).map((due) => due - now)),
    undelivered: 0,
    oldest: published === undefined ? 0 : Math.max(0, now - published),
    consumers: undefined,
    remarks: { consumers: "a file does not record its consumers" }
  }
}

/** Removes messages in several transactions, so other processes and the event loop get their turns. */
const purge = (queue: string, store: Store): Effect.Effect<number, BrokerError.BrokerError> => {
  const some = Effect.callback<number, BrokerError.BrokerError>((resume) => {
    let removed = 0
    store.add({
      operation: "purge",
      queue,
      weight: maxPurge,
      run: (connection) => {
        removed = Rows.purge(connection, queue, store.now(), maxPurge)
      },
      end: (error) => {
        // A parked letter may have held up the messages of any queue.
        store.wake()
        resume(error === undefined ? Effect.succeed(removed) : Effect.fail(error))
      }
    })
  })
  return Effect.flatMap(some, (removed) =>
    removed < maxPurge ? Effect.succeed(removed) : Effect.map(purge(queue, store), (others) => removed + others)
  )
}

export const make = (store: Store): Broker.Admin => ({
  counts: (queue) =>
    store.read({ operation: "counts", queue }, (connection) => countsOf(connection, queue, store.now())),
  backlog: ({ queue }) =>
    store.read({ operation: "counts", queue }, (connection) => backlogOf(connection, queue, store.now())),
  names: store.read({ operation: "names" }, Rows.names),
  purge: (queue) => purge(queue, store),
  browse: (options) => open(options, store)
})
