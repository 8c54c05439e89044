/** The connections of one process to the file of this boot. They end with the process: SQLite then rolls back what was open. */
import type { DatabaseSync } from "node:sqlite"
import type { Machine } from "../world/Machine.ts"
import type { Disk } from "./Disk.ts"
import type { Faults, Verb } from "./Faults.ts"
import { sqliteError } from "./Faults.ts"

/** The connections of one process. */
export interface Connections {
  /** Opens a connection: of the adapter, or of the program. `isSynced`: each of its commits is synced. */
  readonly open: (of: "adapter" | "program", isSynced: boolean) => DatabaseSync
  readonly close: () => void
}

interface Dependencies {
  readonly disk: Disk
  readonly machine: Machine
  readonly faults: Faults
  /** Whether the file cannot be reached. */
  readonly isAway: () => boolean
  /** Called after each commit. */
  readonly onCommit: (of: "adapter" | "program") => void
}

const verbOf = (sql: string): Verb | undefined => {
  if (sql.startsWith("INSERT INTO requeue_message")) return "publish"
  if (sql.startsWith("UPDATE requeue_message SET leased = ?, token = ?")) return "receive"
  return /^(UPDATE|DELETE)/.test(sql) && sql.includes("token") ? "settle" : undefined
}

type Values = ReadonlyArray<any> // of the adapter, or of the program

const fail = (): never => {
  throw new Error("the connection was closed")
}

/** The functions of a closed connection, which keep nothing of the world. */
const ended = { exec: fail, prepare: fail, close: (): void => {} }

/** The connections of a process without any. */
export const make = ({ disk, faults, isAway, machine, onCommit }: Dependencies): Connections => {
  const all = new Set<DatabaseSync>()
  const closeAll = (): void => {
    for (const db of all) db.close()
  }
  machine.onKilled(closeAll)

  const open: Connections["open"] = (of, isSynced) => {
    if (isAway() || !machine.isAlive()) throw sqliteError(14, "unable to open database file")
    const db = disk.open()
    const boot = disk.boot()
    let verb: Verb = "program"
    const [exec, prepare, close] = [db.exec.bind(db), db.prepare.bind(db), db.close.bind(db)]
    all.add(db)

    const check = (): void => {
      if (!machine.isAlive()) throw new Error("this process has ended")
    }

    const commit = (): void => {
      faults.commit(verb)
      check()
      exec("COMMIT")
      // No process uses the file of an earlier boot.
      if (disk.boot() !== boot) return
      if (isSynced) disk.sync()()
      onCommit(of)
      faults.committed(verb)
    }

    db.exec = (sql) => {
      check()
      if (sql === "COMMIT") return commit()
      if (sql === "BEGIN IMMEDIATE") {
        faults.begin()
        verb = "program"
      }
      exec(sql)
    }
    db.prepare = (sql) => {
      check()
      const statement = prepare(sql)
      const kind =
        of === "program" ? (sql.startsWith("PRAGMA") || sql.startsWith("SELECT") ? undefined : of) : verbOf(sql)
      if (kind === undefined) return statement
      const before = (): void => {
        check()
        verb = kind
        faults.write(kind)
      }
      const [run, all] = [statement.run.bind(statement), statement.all.bind(statement)]
      statement.run = (...values: Values) => {
        before()
        return run(...values)
      }
      statement.all = (...values: Values) => {
        before()
        return all(...values)
      }
      return statement
    }
    db.close = () => {
      close()
      all.delete(db)
      // Its statements keep it alive. Through functions of the world it would keep the statements, and so itself.
      Object.assign(db, ended)
    }
    return db
  }

  return { open, close: closeAll }
}
