/** The operators' view of a queue. */
import { Backlog, type Broker, type BrokerError, Metadata } from "@requeue/core/port"
import { SqlMessage } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type { Session } from "../client.ts"
import type { Store } from "../connect/store.ts"
import type { Changes } from "../settle/changes.ts"
import type { Statements } from "../statements.ts"
import { open } from "./browse.ts"

/** Maximum number of messages in one statement. */
const maxPurge = 1000

const countsOf = async (session: Session, queue: string, statements: Statements) => {
  const [row = []] = await session.query(statements.count, [queue])
  const [ready, inFlight, delayed, , blocked = 0] = row.map(Number)
  return {
    ready,
    inFlight,
    delayed,
    ...(blocked === 0 ? {} : { blocked }),
    ...(row[3] === true ? {} : { isMissing: true })
  }
}

const backlogOf = async (session: Session, queue: string, { now, statements }: Store): Promise<Backlog.Backlog> => {
  const [first] = await session.query(statements.oldest, [queue])
  const published =
    first && Metadata.publishedAt(SqlMessage.toDelivery(SqlMessage.fromColumns(first), "postgres").metadata)
  const delays = await session.query(statements.delays, [queue])
  return {
    ...(await countsOf(session, queue, statements)),
    backoff: Backlog.group(delays.map(([delay]) => Number(delay))),
    undelivered: 0,
    oldest: published === undefined ? 0 : Math.max(0, now() - published),
    consumers: undefined,
    remarks: { consumers: "a table does not record its consumers" }
  }
}

/** Removes messages in several short statements. */
const purge = (queue: string, store: Store): Effect.Effect<number, BrokerError.BrokerError> =>
  Effect.flatMap(
    store.read({ operation: "purge", queue }, async (session) => {
      const rows = await session.query(store.statements.purge, [queue, maxPurge])
      // A parked letter may have held up messages of another queue. Their due times are not known.
      for (const lane of new Set(rows.map(([, lane]) => lane))) if (lane !== null) store.wake(String(lane), 0)
      return rows.length
    }),
    (removed) =>
      removed < maxPurge ? Effect.succeed(removed) : Effect.map(purge(queue, store), (others) => removed + others)
  )

export const make = (store: Store, changes: Changes): Broker.Admin => {
  const { read, statements } = store
  return {
    counts: (queue) => read({ operation: "counts", queue }, (session) => countsOf(session, queue, statements)),
    backlog: ({ queue }) => read({ operation: "counts", queue }, (session) => backlogOf(session, queue, store)),
    names: read({ operation: "names" }, async (session) =>
      (await session.query(statements.names, [])).map(([name]) => String(name))
    ),
    purge: (queue) => purge(queue, store),
    browse: (options) => open(options, store, changes)
  }
}
