/** The statements of the adapter. Times are in epoch milliseconds. */
import { type SqlCommand, SqlMessage } from "@requeue/kit"
import type { Connection } from "./connect/connection.ts"
import { expire, inOrder } from "./claims.ts"
import { blocked, free, isBlocked, isFree, isLeased, isShared, isUnshared } from "./connect/schema.ts"

/**
 * Returns when a message is due, as a whole number: never early, and at once without a delay.
 *
 * A clock may have fractions of a millisecond.
 */
const dueAt = (now: number, delay: number): number => (delay === 0 ? Math.floor(now) : Math.ceil(now + delay))

/** The columns of a row. */
const all = `${SqlMessage.columns}, ${SqlMessage.lanes}, fair_by AS fairBy`

const isHeld = `seq = ? AND token = ? AND ${isLeased}`

const rowsOf = (rows: ReadonlyArray<unknown>): ReadonlyArray<SqlMessage.Row> => rows as ReadonlyArray<SqlMessage.Row> // The columns of the table.

/** Creates a queue if it is missing. */
export const declare = ({ declared, prepare }: Connection, queue: string): void => {
  if (declared.has(queue)) return
  prepare("INSERT OR IGNORE INTO requeue_queue (name) VALUES (?)").run(queue)
  declared.add(queue)
}

export const exists = ({ prepare }: Connection, queue: string): boolean =>
  prepare("SELECT 1 FROM requeue_queue WHERE name = ?").get(queue) !== undefined

const inserted = ["queue", "at", "metadata", "headers", "body", "key", "lane", "position", "fair_by"]

/** The beginning of a statement that inserts rows, and the placeholders of one row. */
export const into = `INSERT INTO requeue_message (${inserted.join()}) VALUES `
export const placeholders = `(${inserted.map(() => "?").join()})`

/** The values of a row to insert. */
export const valuesOf = (
  { body, delay, fairBy, headers, metadata, place, queue }: SqlMessage.NewRow,
  now: number
): ReadonlyArray<string | number | Uint8Array | null> => [
  queue,
  dueAt(now, delay),
  metadata,
  headers,
  body,
  place?.key ?? null,
  place?.queue ?? null,
  place?.position ?? null,
  fairBy ?? null
]

/** Inserts a row with a key: blocked, if its lane has another. The trigger would write it twice. */
const insertKeyed = `INSERT INTO requeue_message (${inserted.join()}, leased)
  SELECT ${inserted.map((_, index) => `?${index + 1}`).join()},
    iif(EXISTS (SELECT 1 FROM requeue_message WHERE lane = ?7 AND key = ?6), ${blocked}, ${free})`

export const insert = ({ prepare }: Connection, row: SqlMessage.NewRow, now: number): void =>
  void prepare(row.place === undefined ? `${into}${placeholders}` : insertKeyed).run(...valuesOf(row, now))

/** Returns when the next message becomes due, or the next lease can end; `Infinity`: not without a change of the file. */
export const nextTime = ({ prepare }: Connection, queue: string, now: number): number => {
  const times = [
    prepare(`SELECT at FROM ${inOrder} WHERE queue = ? AND at > ? ORDER BY at LIMIT 1`).get(queue, now)?.["at"],
    prepare(`SELECT leased FROM requeue_message WHERE ${isLeased} ORDER BY leased LIMIT 1`).get()?.["leased"]
  ].filter((time) => time !== undefined)
  return Math.min(...times.map(Number))
}

/** Renews a lease. Returns whether the delivery holds it. */
export const extend = ({ prepare }: Connection, { seq, token }: SqlMessage.Handle, until: number): boolean =>
  prepare(`UPDATE requeue_message SET leased = ? WHERE ${isHeld}`).run(until, seq, token).changes === 1

/** Removes a delivered message. Returns whether the delivery held it. */
export const remove = ({ prepare }: Connection, { seq, token }: SqlMessage.Handle): boolean =>
  prepare(`DELETE FROM requeue_message WHERE ${isHeld}`).run(seq, token).changes === 1

/** Returns a delivered message to its place. `uncounted`: how many deliveries do not count. */
export const giveBack = ({ prepare }: Connection, { seq, token }: SqlMessage.Handle, uncounted: 0 | 1): boolean =>
  prepare(`UPDATE requeue_message SET leased = ${free}, deliveries = deliveries - ? WHERE ${isHeld}`).run(
    uncounted,
    seq,
    token
  ).changes === 1

/** Turns a delivered message into its copy: a retry, or a dead letter in another queue. */
export const replace = (
  { prepare }: Connection,
  { seq, token }: SqlMessage.Handle,
  { delay, metadata, place, queue }: SqlCommand.Replacement,
  now: number
): boolean =>
  prepare(
    `UPDATE requeue_message SET queue = ?, at = ?, metadata = ?, leased = ${free}, deliveries = 0, lane = ? WHERE ${isHeld}`
  ).run(queue, dueAt(now, delay), metadata, place?.queue ?? null, seq, token).changes === 1

/** Removes up to `limit` messages that no consumer has, and returns their number. First the blocked ones: a removal frees others. */
export const purge = (connection: Connection, queue: string, now: number, limit: number): number => {
  expire(connection, now)
  const sql = `DELETE FROM requeue_message WHERE seq IN (
    SELECT seq FROM requeue_message WHERE lane = ?1 AND queue = ?1 AND ${isBlocked}
    UNION ALL SELECT seq FROM requeue_message WHERE queue = ?1 AND ${isFree} LIMIT ?2)`
  return Number(connection.prepare(sql).run(queue, limit).changes)
}

/** Removes a message that is still delayed. Returns whether it was. */
export const removeDelayed = ({ prepare }: Connection, { seq, token }: SqlMessage.Handle, now: number): boolean =>
  prepare(`DELETE FROM requeue_message WHERE seq = ? AND token = ? AND ${isFree} AND at > ?`).run(seq, token, now)
    .changes === 1

/** Returns delayed messages after the position of an earlier one, soonest first. */
export const delayed = (
  { prepare }: Connection,
  queue: string,
  after: SqlMessage.Position,
  limit: number
): ReadonlyArray<SqlMessage.Row> =>
  rowsOf(
    prepare(
      `SELECT ${all} FROM ${inOrder}
       WHERE queue = ? AND (at, seq) > (?, ?) ORDER BY at, seq LIMIT ?`
    ).all(queue, after.at, after.seq, limit)
  )

/** The names of all queues. */
export const names = ({ prepare }: Connection): ReadonlyArray<string> =>
  prepare("SELECT name FROM requeue_queue ORDER BY name")
    .all()
    .map(({ name }) => String(name))

/** Of each lane and key, all messages but one are blocked: the index has this number. */
const blockedOfLane = `SELECT total(others) AS n FROM (
  SELECT count(*) - 1 AS others FROM requeue_message WHERE lane = ? GROUP BY key)`

/** Returns how many messages a message holds up; `undefined` if it is in no lane. */
export const blocks = ({ prepare }: Connection, { key = null, lane = null }: SqlMessage.Row): number | undefined => {
  if (lane === null) return undefined
  const sql = "SELECT count(*) - 1 AS n FROM requeue_message WHERE lane = ? AND key = ?"
  return Number(prepare(sql).get(lane, key)?.["n"])
}

/** Counts a queue's messages by state. A lease that is over makes its message ready. */
export const count = ({ prepare }: Connection, queue: string, now: number) => {
  const number = (sql: string, ...values: ReadonlyArray<string | number>): number =>
    Number(prepare(`SELECT count(*) AS n FROM requeue_message WHERE queue = ? AND ${sql}`).get(queue, ...values)?.["n"])
  const free = (due: string): number => number(`${isUnshared} AND ${due}`, now) + number(`${isShared} AND ${due}`, now)
  const waiting = Number(prepare(blockedOfLane).get(queue)?.["n"])
  return {
    ...(waiting === 0 ? undefined : { blocked: waiting }),
    ready: free("at <= ?") + number(`${isLeased} AND leased <= ?`, now),
    inFlight: number(`${isLeased} AND leased > ?`, now),
    delayed: free("at > ?")
  }
}

/** Returns when each delayed message is due. */
export const dues = ({ prepare }: Connection, queue: string, now: number): ReadonlyArray<number> =>
  prepare(`SELECT at FROM ${inOrder} WHERE queue = ? AND at > ?`)
    .all(queue, now)
    .map(({ at }) => Number(at))

/** Returns the message that has been ready longest. */
export const oldest = ({ prepare }: Connection, queue: string, now: number): SqlMessage.Row | undefined =>
  rowsOf(
    prepare(`SELECT ${all} FROM ${inOrder} WHERE queue = ? AND at <= ? ORDER BY at, seq LIMIT 1`).all(queue, now)
  )[0]
