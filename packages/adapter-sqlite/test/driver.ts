/** Node's driver for virtual time: the disk answers at once, and a commit is noticed at once. It can make a statement fail. */
import * as fs from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { type Driver, node, type Statement } from "../src/internal/client.ts"

/** The error of SQLite with this result code, as `node:sqlite` throws it. */
export const sqliteError = (errcode: number, message: string): Error =>
  Object.assign(new Error(message), { code: "ERR_SQLITE_ERROR", errcode })

/** Makes statements and commits fail by throwing. */
interface Faults {
  /** Called before each statement. */
  readonly statement: (sql: string, values: ReadonlyArray<unknown>) => void
  /** Called before each commit. */
  readonly commit: () => void
}

export interface VirtualDriver extends Driver {
  /** Opens a file as a program does. A commit by `exec` is noticed at once. */
  readonly open: (path: string) => DatabaseSync
  /** Notices the commits of other connections of a file. */
  readonly notify: (path: string) => void
  faults: Faults | undefined
  /** Called instead of a flush. Default: writes the file to the disk. */
  flush: (() => Promise<void>) | undefined
}

/** Makes a driver. Brokers that share it notice each other's commits. */
export const make = (): VirtualDriver => {
  let jobs = 0
  const watchers = new Map<string, Set<() => void>>()
  const notify = (path: string): void => {
    for (const watcher of watchers.get(path) ?? []) watcher()
  }

  const intercepted = (statement: Statement, sql: string): Statement =>
    new Proxy(statement, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name)
        if (typeof member !== "function") return member
        return (...values: ReadonlyArray<unknown>) => {
          driver.faults?.statement(sql, values)
          return Reflect.apply(member, target, values)
        }
      }
    })

  const open = (path: string): DatabaseSync => {
    const db = new DatabaseSync(path, { timeout: 0 })
    const [exec, prepare] = [db.exec.bind(db), db.prepare.bind(db)]
    db.exec = (sql) => {
      const isCommit = sql === "COMMIT"
      if (isCommit) driver.faults?.commit()
      exec(sql)
      if (isCommit) notify(path)
    }
    db.prepare = (sql) => intercepted(prepare(sql), sql)
    return db
  }

  const driver: VirtualDriver = {
    ...node,
    faults: undefined,
    flush: undefined,
    open,
    notify,
    flusher: (path) => ({
      flush: async () => {
        if (driver.flush !== undefined) return driver.flush()
        const descriptor = fs.openSync(`${path}-wal`, "r")
        fs.fdatasyncSync(descriptor)
        fs.closeSync(descriptor)
      },
      close: () => undefined
    }),
    watch: (path, onChange) => {
      const all = watchers.get(path) ?? new Set()
      watchers.set(path, all.add(onChange))
      return () => void all.delete(onChange)
    },
    // Virtual time advances after a few turns of the event loop without work, so a chain of jobs needs none. A mutant may have a
    // chain without an end.
    soon: (run) => (++jobs % 500 === 0 ? setImmediate(run) : queueMicrotask(run))
  }
  return driver
}
