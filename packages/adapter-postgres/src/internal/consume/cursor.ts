/**
 * Where the next claim begins: after the last message that was claimed. Before it, the index has entries of removed messages.
 * While a transaction of the server stays open, each scan reads the entries again that were removed since the transaction began.
 *
 * A message may be before the cursor: its transaction committed late, its lease ended, or another process returned it. The
 * process that made it ready lowers the cursors of the others, and every second a claim begins at the start.
 */
import type { SqlMessage } from "@requeue/kit"
import * as Pace from "../connect/pace.ts"

export interface Cursor {
  /** Returns the position after which a claim begins. `now` is in monotonic milliseconds. */
  readonly start: (now: number) => SqlMessage.Position
  /** Records a claim. `last` is the last message that it found. */
  readonly claimed: (last: SqlMessage.Position | undefined, now: number) => void
  /** Includes messages that are due at this time or later; `undefined`: all. */
  readonly lower: (from: number | undefined) => void
}

const before = (at: number): SqlMessage.Position => ({ at: at - 1, seq: Number.MAX_SAFE_INTEGER })

/** Before all messages. */
const beginning = before(0)

export const make = (): Cursor => {
  let position = beginning
  /** When a claim begins at the start. */
  let dueAt = Number.NEGATIVE_INFINITY
  /** When the running claim began, if at the start. */
  let began: number | undefined
  /** The lowest position since the running claim began: that claim may not see the message. */
  let lowest = Number.POSITIVE_INFINITY
  return {
    start: (now) => {
      began = now >= dueAt ? now : undefined
      lowest = Number.POSITIVE_INFINITY
      return began === undefined ? position : beginning
    },
    claimed: (last, now) => {
      if (began !== undefined) dueAt = now + Pace.pause(now - began)
      if (last !== undefined) position = last.at < lowest ? last : before(lowest)
    },
    lower: (from = 0) => {
      lowest = Math.min(lowest, from)
      if (from <= position.at) position = before(from)
    }
  }
}
