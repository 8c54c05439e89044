/**
 * Claims for a consumer: messages in one order, or those of each share in turn once the queue has had a message with `fairBy`. A consumer
 * never goes back, because a queue with few messages would change each time.
 */
import { ShareLimits } from "@requeue/core"
import type { Broker } from "@requeue/core/port"
import { SqlMessage } from "@requeue/kit"
import type { Session } from "../client.ts"
import type { Store } from "../connect/store.ts"
import { isLeased } from "../rows.ts"
import * as Cursor from "./cursor.ts"

export interface Claimed {
  readonly rows: ReadonlyArray<SqlMessage.Row>
  /** Whether another claim may find more immediately. */
  readonly hasMore: boolean
}

export interface Claims {
  readonly claim: (session: Session, size: number) => Promise<Claimed>
  /** Returns in how many milliseconds another claim may find more. Creates a queue that was deleted. */
  readonly next: (session: Session) => Promise<number>
  /** Includes messages that are due at this time or later; `undefined`: all. */
  readonly lower: (from: number | undefined) => void
}

interface Options extends Pick<Broker.SubscribeOptions, "queue" | "shareLimits"> {
  readonly store: Pick<Store, "settings" | "statements" | "timers">
}

/** Of a round that has found all shares. */
const none = Number.POSITIVE_INFINITY

export const make = ({ queue, shareLimits, store }: Options): Claims => {
  const { settings, statements, timers } = store
  const { concurrency, rateLimit } = shareLimits ?? {}
  const span = rateLimit === undefined ? null : rateLimit.per + ShareLimits.margin
  const limits = [concurrency ?? null, rateLimit?.max ?? null, span]
  const cursor = Cursor.make()
  let isShared = false
  /** The last share that was seen, and the one where the round began. */
  let [last, origin] = ["", ""]
  /** When a share that the round has skipped may have places, in monotonic milliseconds. */
  let opening = none

  const inOrder = async (session: Session, size: number): Promise<Claimed> => {
    const { at, seq } = cursor.start(timers.now())
    const columns = await session.query(statements.claim, [queue, at, seq, size, settings.lease, 1])
    const due = columns.map(SqlMessage.fromColumns)
    cursor.claimed(due.at(-1), timers.now())
    // A full queue may get shares: each claim at the start asks for them.
    if (at < 0) isShared = (await session.query(statements.hasShares, [queue]))[0]?.[0] === true
    return { rows: due.filter(isLeased), hasMore: due.length === size || isShared }
  }

  const inTurn = async (session: Session, size: number): Promise<Claimed> => {
    if (last === origin) opening = none
    const columns = await session.query(statements.turn, [queue, last, origin, size, settings.lease, ...limits])
    const rows = columns.slice(0, -1).map(SqlMessage.fromColumns)
    const [seen, isWhole, pause] = columns.at(-1)!.slice(11)
    last = String(seen)
    if (isWhole === true || rows.length > 0) origin = last
    if (pause !== null) opening = Math.min(opening, timers.now() + Number(pause))
    return { rows, hasMore: isWhole !== true || rows.length === size }
  }

  return {
    claim: (session, size) => (isShared ? inTurn(session, size) : inOrder(session, size)),
    next: async (session) => {
      const [row] = await session.query(isShared ? statements.nextTurn : statements.next, [queue])
      if (row?.[1] !== true) await session.query(statements.declare, [[queue]])
      if (row?.[2] === true && !isShared) {
        isShared = true
        return 0
      }
      return Math.min(Number(row?.[0] ?? none), opening - timers.now())
    },
    lower: cursor.lower
  }
}
