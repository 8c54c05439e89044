/** Leases messages, oldest first: of a whole queue, or of one share. Times are in epoch milliseconds. */
import { SqlMessage } from "@requeue/kit"
import type { Connection } from "./connect/connection.ts"
import { free, isFree, isLeased, isShared, isUnshared } from "./connect/schema.ts"

/** The free messages of all shares. In the order of their times, SQLite merges two indices, and reads no more than a limit. */
export const inOrder = `(SELECT * FROM requeue_message WHERE ${isUnshared}
  UNION ALL SELECT * FROM requeue_message WHERE ${isShared})`

export interface Claim {
  readonly queue: string
  readonly now: number
  /** When the leases end. */
  readonly until: number
  readonly token: number
  readonly limit: number
  /** Whether it is a delivery. */
  readonly counts: boolean
}

// A statement that is made once is found faster.
const ended = `UPDATE requeue_message SET leased = ${free} WHERE ${isLeased} AND leased <= ?`

const dueOf = (source: string): string =>
  `SELECT seq, ?, deliveries + ?, at, metadata, headers, body, ${SqlMessage.lanes}, fair_by
   FROM ${source} queue = ? AND at <= ? ORDER BY at, seq LIMIT ?`

const dueOfAll = dueOf(`${inOrder} WHERE`)
const dueOfShare = dueOf(`requeue_message WHERE ${isFree} AND fair_by IS ? AND`)

/** Ends the leases that are over. */
export const expire = ({ prepare }: Connection, now: number): void => void prepare(ended).run(now)

const lease = (
  { prepare }: Connection,
  { counts, limit, now, queue, token, until }: Claim,
  due: string,
  ...values: ReadonlyArray<string | null>
): ReadonlyArray<SqlMessage.Row> => {
  const select = prepare(due)
  // SQLite's objects are slow to read.
  select.setReturnArrays(true)
  const found: ReadonlyArray<unknown> = select.all(token, counts ? 1 : 0, ...values, queue, now, limit)
  const rows = (found as ReadonlyArray<ReadonlyArray<unknown>>).map(SqlMessage.fromColumns) // It returns arrays.
  const update = prepare("UPDATE requeue_message SET leased = ?, token = ?, deliveries = ? WHERE seq = ?")
  for (const { deliveries, seq } of rows) update.run(until, token, deliveries, seq)
  return rows
}

/** Leases up to `limit` due messages of any share. */
export const ofAll = (connection: Connection, claim: Claim): ReadonlyArray<SqlMessage.Row> =>
  lease(connection, claim, dueOfAll)

/** Leases up to `limit` due messages of a share. `null`: those without `fairBy`. */
export const ofShare = (connection: Connection, claim: Claim, fairBy: string | null): ReadonlyArray<SqlMessage.Row> =>
  lease(connection, claim, dueOfShare, fairBy)
