/** The limits of shares: how many more messages of a share a consumer may lease. Times are in epoch milliseconds. */
import { type RateLimit, ShareLimits } from "@requeue/core"
import type { Connection } from "../connect/connection.ts"
import { isLeased } from "../connect/schema.ts"

/** The part of a share that its limits leave. */
export interface Room {
  readonly size: number
  /** When a window without room has room again; `Infinity`: at once, or when a message is settled. */
  readonly opens: number
}

/** Deliveries of a share at one time. */
export interface Delivered {
  readonly at: number
  readonly count: number
}

/** Returns the room of a share. `delivered` has its last deliveries, newest first. */
export const roomOf = (
  { concurrency = Number.POSITIVE_INFINITY, rateLimit }: ShareLimits.ShareLimits,
  leased: number,
  delivered: ReadonlyArray<Delivered>,
  now: number
): Room => {
  const places = Math.max(0, concurrency - leased)
  if (rateLimit === undefined) return { size: places, opens: Number.POSITIVE_INFINITY }
  let left = rateLimit.max
  for (const { at, count } of delivered) {
    const opens = at + windowOf(rateLimit)
    if (opens <= now) break
    left -= count
    if (left <= 0) return { size: 0, opens }
  }
  return { size: Math.min(places, left), opens: Number.POSITIVE_INFINITY }
}

/** Returns the length of a window of deliveries, in milliseconds. */
export const windowOf = ({ per }: Pick<RateLimit.RateLimit, "per">): number => per + ShareLimits.margin

const takenOf = ({ prepare }: Connection, queue: string, fairBy: string): number => {
  const sql = `SELECT count(*) AS n FROM requeue_message WHERE ${isLeased} AND queue = ? AND fair_by = ?`
  return Number(prepare(sql).get(queue, fairBy)?.["n"])
}

const ofShare = "FROM requeue_delivered WHERE queue = ? AND fair_by = ?"

/** Returns the last deliveries of a share: as one, if its window has room. */
const deliveredOf = (
  { prepare }: Connection,
  queue: string,
  fairBy: string,
  limit: RateLimit.RateLimit,
  now: number
): ReadonlyArray<Delivered> => {
  const sum = prepare(`SELECT coalesce(sum(count), 0) AS n ${ofShare} AND at > ?`)
  const count = Number(sum.get(queue, fairBy, now - windowOf(limit))?.["n"])
  if (count < limit.max) return [{ at: now, count }]
  return prepare(`SELECT at, count ${ofShare} ORDER BY at DESC LIMIT ?`)
    .all(queue, fairBy, limit.max)
    .map(({ at, count }) => ({ at: Number(at), count: Number(count) }))
}

/** Reads the room of a share. */
export const read = (
  connection: Connection,
  queue: string,
  fairBy: string,
  limits: ShareLimits.ShareLimits,
  now: number
): Room => {
  const { concurrency, rateLimit } = limits
  const taken = concurrency === undefined ? 0 : takenOf(connection, queue, fairBy)
  const delivered = rateLimit === undefined ? [] : deliveredOf(connection, queue, fairBy, rateLimit, now)
  return roomOf(limits, taken, delivered, now)
}

/** Removes the deliveries whose windows have ended. */
export const prune = ({ prepare }: Connection, now: number): void =>
  void prepare("DELETE FROM requeue_delivered WHERE until <= ?").run(now)

/** Records deliveries of a share: at the next whole millisecond, because no window may end early. */
export const record = (
  { prepare }: Connection,
  queue: string,
  fairBy: string,
  window: number,
  { at, count }: Delivered
): void => {
  const whole = Math.ceil(at)
  prepare(
    `INSERT INTO requeue_delivered (queue, fair_by, at, until, count) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET count = count + excluded.count, until = max(until, excluded.until)`
  ).run(queue, fairBy, whole, Math.ceil(whole + window), count)
}
