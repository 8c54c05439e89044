/** SQLite and the file system. Only this file and `log.ts` import them. */
import * as fs from "node:fs"
import { dirname, resolve } from "node:path"
import type { DatabaseSync, StatementSync } from "node:sqlite"
import { memory } from "../SqliteOptions.ts"
import * as Log from "./log.ts"

export type { StatementSync as Statement }

/** A connection of the driver. Its calls are synchronous. */
export type Database = Pick<DatabaseSync, "prepare" | "exec" | "close">

/** The platform, which tests replace. */
export interface Driver {
  /**
   * Returns the absolute path of a file: the program may change its working directory, and SQLite would read a relative path such
   * as `file:queue.db` as a URL.
   */
  readonly resolve: (path: string) => string
  /** Opens or creates a file. Locked files are refused at once: waiting for a lock would block the event loop. */
  readonly open: (path: string) => Database
  /** Returns the number of the file system's kind, as `statfs` reports it; `undefined` if the folder is missing. */
  readonly fileSystem: (path: string) => number | undefined
  /** Returns a name of the file that a replacement does not have; `undefined` if the file is missing. */
  readonly identity: (path: string) => string | undefined
  /** Returns the path of the file's log; `undefined` if the file is missing. */
  readonly logOf: (path: string) => string | undefined
  /** Returns the file's log. */
  readonly log: (path: string) => Log.Log
  /** Calls back after each change of a file's log. The result ends it; `undefined` if the log cannot be watched. */
  readonly watch: (path: string, onChange: () => void) => (() => void) | undefined
  /** Calls back once the current turn of the event loop has gathered its work. */
  readonly soon: (run: () => void) => void
}

const nameOf = (path: string): string => {
  const { dev, ino } = fs.statSync(path)
  return `${dev}:${ino}`
}

const orUndefined = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Node's own. */
export const node: Driver = {
  resolve: (path) => (path === memory ? path : resolve(path)),
  open: (path) => {
    // Not imported: loading it makes Node 22 warn, also in programs that use another broker.
    const { DatabaseSync: Opened } = process.getBuiltinModule("node:sqlite")
    return new Opened(path, { timeout: 0 })
  },
  fileSystem: (path) => orUndefined(() => fs.statfsSync(dirname(path)).type),
  identity: (path) => orUndefined(() => nameOf(path)),
  logOf: (path) => orUndefined(() => Log.pathOf(path)),
  log: Log.node,
  watch: (path, onChange) =>
    orUndefined(() => {
      const watcher = fs.watch(Log.pathOf(path), { persistent: false }, onChange)
      watcher.on("error", () => watcher.close())
      return () => watcher.close()
    }),
  // oxlint-disable-next-line no-restricted-globals -- the end of a turn, which gathers the sends of many sockets
  soon: (run) => void setImmediate(run)
}
