/** Node's driver for virtual time, on an emulated disk. A commit is noticed at once. It can make a statement fail. */
import { DatabaseSync } from "node:sqlite"
import { type Driver, node, type Statement } from "../src/internal/client.ts"
import { checkpoint } from "../src/internal/connect/checkpoint.ts"
import type { Log } from "../src/internal/log.ts"
import * as Disk from "./disk.ts"

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
  /** How long a flush takes. Default: no time. */
  flush: (() => Promise<void>) | undefined
}

/** Makes a driver for the processes of one boot. Brokers that share it notice each other's commits. */
export const make = (disk = Disk.make()): VirtualDriver => {
  const boot = disk.boot()
  let jobs = 0
  const checkAlive = (): void => {
    if (disk.boot() !== boot) throw new Error("this process has ended")
  }
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
          checkAlive()
          driver.faults?.statement(sql, values)
          return Reflect.apply(member, target, values)
        }
      }
    })

  const open = (path: string): DatabaseSync => {
    checkAlive()
    const db = new DatabaseSync(disk.at(path), { timeout: 0 })
    disk.opened(path, db)
    let isSynced = true
    const [exec, prepare, close] = [db.exec.bind(db), db.prepare.bind(db), db.close.bind(db)]
    db.exec = (sql) => {
      checkAlive()
      const isCommit = sql === "COMMIT"
      if (isCommit) driver.faults?.commit()
      exec(sql)
      if (sql === "PRAGMA synchronous = OFF") isSynced = false
      if (!isCommit) return
      if (isSynced) disk.written(path)
      notify(path)
    }
    db.prepare = (sql) => {
      checkAlive()
      return intercepted(prepare(sql), sql)
    }
    db.close = () => {
      if (disk.boot() !== boot) return
      close()
      disk.closed(db)
      if (isSynced) disk.written(path)
    }
    return db
  }

  const log = (path: string): Log => {
    const real = node.log(disk.at(path))
    return {
      ...real,
      flush: async () => {
        const end = disk.sync(`${path}-wal`)
        await driver.flush?.()
        // A process that has ended gets no answer.
        if (disk.boot() !== boot) return new Promise(() => {})
        end()
      },
      checkpoint: async (pages) => {
        const db = open(path)
        try {
          const isRestarted = checkpoint(db, pages)
          if (isRestarted) disk.restarted(path)
          return isRestarted
        } finally {
          db.close()
        }
      }
    }
  }

  const driver: VirtualDriver = {
    ...node,
    faults: undefined,
    flush: undefined,
    open,
    notify,
    log,
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
