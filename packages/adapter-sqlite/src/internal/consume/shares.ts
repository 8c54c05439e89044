/**
 * Leases the messages of the shares of a queue in turn. A share has the messages with the same `fairBy`, and one has those without.
 *
 * The work of a claim depends on its limit, never on how many messages or shares wait: it visits the shares after the last one that was
 * visited, by jumping from one to the next in an index.
 */
import type { ShareLimits } from "@requeue/core"
import type { SqlMessage } from "@requeue/kit"
import * as Claims from "../claims.ts"
import type { Connection } from "../connect/connection.ts"
import { isFree, isShared, isUnshared } from "../connect/schema.ts"
import * as Limits from "./limits.ts"

/** The place of the messages without `fairBy` in the order of shares: the first. */
const unshared = ""

/** A round through all shares, in several claims if it has to be. */
export interface Round {
  /** The share after which it began, and with which it ends. */
  readonly from: string
  /** The last share that was visited. */
  readonly last: string
  /** Whether it has come to the first share again. */
  readonly isWrapped: boolean
}

/** Returns a round that begins after a share. */
export const after = (share: string): Round => ({ from: share, last: share, isWrapped: false })

/** The round of a new consumer. */
export const first = after(unshared)

export interface Claimed {
  readonly rows: ReadonlyArray<SqlMessage.Row>
  readonly round: Round
  /** Whether other messages that may be leased need another claim. It goes on with the round. */
  readonly isWhole: boolean
  /** Whether messages wait until others of their shares are settled. */
  readonly isHeldUp: boolean
  /** When the window of a share has room again, in epoch milliseconds. */
  readonly opens: number
}

/** How many shares a claim visits in vain: those with delayed messages only, and those at a limit. */
const maxVain = 100

/** A share that may get messages. */
export interface Share {
  readonly name: string
  readonly room: number
}

/**
 * Divides a limit among shares, equally. What a share does not use, the others get. `lease` leases up to a number of messages of a share,
 * and returns how many there were.
 */
export const divide = (
  limit: number,
  shares: ReadonlyArray<Share>,
  lease: (name: string, limit: number) => number
): void => {
  let [left, open] = [limit, shares]
  while (left > 0 && open.length > 0) {
    const further: Array<Share> = []
    for (const [index, { name, room }] of open.entries()) {
      const part = Math.min(room, Math.ceil(left / (open.length - index)))
      const count = part === 0 ? 0 : lease(name, part)
      left -= count
      if (count === part && room > part) further.push({ name, room: room - part })
    }
    open = further
  }
}

// Statements that are made once are found faster.
const sharedOf = `SELECT 1 FROM requeue_message WHERE queue = ? AND ${isShared} LIMIT 1`
const nextOf = `SELECT fair_by AS name, at, fair_by > ? AS isPast FROM requeue_message
  WHERE queue = ? AND ${isFree} AND fair_by > ? ORDER BY fair_by, at, seq LIMIT 1`
const unsharedOf = `SELECT ? AS name, at FROM requeue_message WHERE queue = ? AND ${isUnshared} ORDER BY at, seq LIMIT 1`

/** Visits shares with the time of their first message, until `visit` returns false or the round ends. Returns where it has come to. */
const walk = (
  { prepare }: Connection,
  queue: string,
  { from, ...begun }: Round,
  visit: (share: string, due: number) => boolean
): Pick<Claimed, "isWhole" | "round"> => {
  const [next, firstUnshared] = [prepare(nextOf), prepare(unsharedOf)]
  let { isWrapped, last } = begun
  while (true) {
    let found = next.get(from, queue, last)
    if (isWrapped && (found === undefined || found["isPast"] === 1)) return { isWhole: true, round: after(from) }
    if (found === undefined) [isWrapped, last, found] = [true, unshared, firstUnshared.get(unshared, queue)]
    if (found === undefined) continue
    last = String(found["name"])
    if (!visit(last, Number(found["at"]))) return { isWhole: false, round: { from, last, isWrapped } }
  }
}

/** Leases up to `limit` due messages. */
export const claim = (
  connection: Connection,
  given: Claims.Claim,
  begun: Round,
  limits: ShareLimits.ShareLimits | undefined
): Claimed => {
  const { limit, now, queue } = given
  let [isHeldUp, opens, vain] = [false, Number.POSITIVE_INFINITY, 0]
  Claims.expire(connection, now)
  if (connection.prepare(sharedOf).get(queue) === undefined) {
    return { rows: Claims.ofShare(connection, given, null), round: begun, isWhole: true, isHeldUp, opens }
  }

  /** Returns how many messages of a share may be leased. */
  const roomOf = (name: string): number => {
    if (limits === undefined || name === unshared) return Number.POSITIVE_INFINITY
    const room = Limits.read(connection, queue, name, limits, now)
    opens = Math.min(opens, room.opens)
    isHeldUp ||= room.size === 0 && room.opens === Number.POSITIVE_INFINITY
    return room.size
  }

  const due: Array<Share> = []
  const { isWhole, round } = walk(connection, queue, begun, (name, at) => {
    const room = at <= now ? roomOf(name) : 0
    if (room > 0) due.push({ name, room })
    else vain++
    return due.length < limit && vain < maxVain
  })

  const { rateLimit } = limits ?? {}
  if (rateLimit !== undefined) Limits.prune(connection, now)
  const rows: Array<SqlMessage.Row> = []
  divide(limit, due, (name, part) => {
    const some = Claims.ofShare(connection, { ...given, limit: part }, name === unshared ? null : name)
    if (rateLimit !== undefined && name !== unshared && some.length > 0)
      Limits.record(connection, queue, name, Limits.windowOf(rateLimit), { at: now, count: some.length })
    rows.push(...some)
    return some.length
  })
  const left = limit - rows.length
  if (left === 0) return { rows, round: after(round.last), isWhole, isHeldUp, opens }
  if (limits === undefined) {
    // Many shares have only delayed messages.
    if (!isWhole) rows.push(...Claims.ofAll(connection, { ...given, limit: left }))
    return { rows, round: after(round.last), isWhole: true, isHeldUp, opens }
  }
  for (const { name } of due) roomOf(name)
  return { rows, round, isWhole, isHeldUp, opens }
}
