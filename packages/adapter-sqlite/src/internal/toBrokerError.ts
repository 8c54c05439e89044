/** From an error of SQLite or the system to a `BrokerError` with a reason and a remedy. Pure. */
import { BrokerError } from "@requeue/core/port"
import { SqlErrors } from "@requeue/kit"

export const errors: SqlErrors.Errors = SqlErrors.make("sqlite")

/** The operation of the port that failed, and its queue. */
export interface Context extends SqlErrors.Context {
  /** The file that could not be opened. Default: the error is not about its path. */
  readonly path?: string | undefined
}

interface Meaning {
  readonly reason: BrokerError.Reason
  readonly remedy: string
  readonly isMisconfigured?: true
}

/** The primary result codes, https://www.sqlite.org/rescode.html. A full disk and a lock concern every message: `Throttled`. */
const meanings: Readonly<Record<number, Meaning>> = {
  1: {
    reason: "ConnectionFailed",
    remedy:
      "Requeue's tables were changed: restore a backup, or drop all tables named requeue_* with their messages, and restart",
    isMisconfigured: true
  },
  3: { reason: "AccessRefused", remedy: "Give the process write permission for the file and its folder" },
  5: { reason: "Throttled", remedy: "End the program that holds a write transaction on the file, or raise timeout" },
  6: { reason: "Throttled", remedy: "End the program that holds a write transaction on the file, or raise timeout" },
  8: { reason: "AccessRefused", remedy: "Give the process write permission for the file and its folder" },
  11: {
    reason: "ConnectionFailed",
    remedy:
      "The file is damaged: stop all its processes, move FILE, FILE-wal and FILE-shm away, then restore a backup or the " +
      "output of sqlite3 MOVED .recover",
    isMisconfigured: true
  },
  13: { reason: "Throttled", remedy: "Free space on the disk: the adapter continues without a restart" },
  14: {
    reason: "ConnectionFailed",
    remedy: "Create the folder, and give the process read and write permission for it and the file",
    isMisconfigured: true
  },
  18: { reason: "BodyTooLarge", remedy: "Send a smaller body" },
  19: { reason: "AccessRefused", remedy: "Remove the trigger or constraint of the file that refuses the row" },
  26: {
    reason: "ConnectionFailed",
    remedy: "The file is not a SQLite database: use another path, or move the file away",
    isMisconfigured: true
  }
}

const unclear: Pick<Meaning, "reason"> = { reason: "ConnectionLost" }

/** Returns SQLite's primary result code; `undefined` for any other error. */
const codeOf = (cause: unknown): number | undefined =>
  cause instanceof Error && "errcode" in cause && typeof cause.errcode === "number" ? cause.errcode & 0xff : undefined

/** Whether another process holds the lock. */
export const isLocked = (cause: unknown): boolean => [5, 6].includes(codeOf(cause) ?? 0)

/** An unknown error, such as one of the disk, counts as a lost connection: the outcome is unknown. */
export const toBrokerError = (cause: unknown, { operation, path, queue }: Context): BrokerError.BrokerError => {
  if (cause instanceof BrokerError.BrokerError) return cause
  const text = cause instanceof Error ? cause.message : String(cause)
  const detail = path === undefined ? text : `${path}: ${text}`
  const meaning = meanings[codeOf(cause) ?? 0] ?? unclear
  return new BrokerError.BrokerError({ broker: "sqlite", operation, queue, detail, cause, ...meaning })
}
