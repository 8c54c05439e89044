/** The platform as the adapter uses it. */
import type { DatabaseSync, StatementSync } from "node:sqlite"
import type { Log } from "./log.ts"

export type { StatementSync as Statement }

/** A connection of the driver. Its calls are synchronous. */
export type Database = Pick<DatabaseSync, "prepare" | "exec" | "close">

/** The platform, which tests and simulations replace. */
export interface Driver {
  /**
   * Returns the absolute path of a file: the program may change its working directory, and SQLite would read a relative path such
   * as `file:queue.db` as a URL.
   */
  readonly resolve: (path: string) => string
  /** Opens or creates a file. Locked files are refused immediately: waiting for a lock would block the event loop. */
  readonly open: (path: string) => Database
  /** Returns the number of the file system's kind, as `statfs` reports it; `undefined` if the folder is missing. */
  readonly fileSystem: (path: string) => number | undefined
  /** Returns a name of the file that a replacement does not have; `undefined` if the file is missing. */
  readonly identity: (path: string) => string | undefined
  /** Returns the path of the file's log; `undefined` if the file is missing. */
  readonly logOf: (path: string) => string | undefined
  /** Returns the file's log. */
  readonly log: (path: string) => Log
  /** Calls back after each change of a file's log. The result ends it; `undefined` if the log cannot be watched. */
  readonly watch: (path: string, onChange: () => void) => (() => void) | undefined
  /** Calls back once the current turn of the event loop has gathered its work. */
  readonly soon: (run: () => void) => void
  /** Keeps the process of a worker alive while it waits for messages, as a network connection would. The result ends it. */
  readonly keepAlive: () => () => void
}
