/** Transactions of programs: by a connection of `node:sqlite`, which is synchronous, or in the shape of Kysely's, which is not. */
import type { DatabaseSync } from "node:sqlite"
import type { Machine } from "../world/Machine.ts"
import type { Transaction } from "../world/Model.ts"
import type { World } from "../world/World.ts"
import type { Connections } from "./Connections.ts"

/** The table of the programs. */
const table = "CREATE TABLE IF NOT EXISTS mine (delivery INTEGER NOT NULL) STRICT"

const insert = "INSERT INTO mine VALUES (?) RETURNING delivery"

const synchronous = (db: DatabaseSync): Transaction => ({
  value: db,
  write: (delivery) => void db.prepare(insert).all(delivery),
  commit: () => db.exec("COMMIT"),
  rollback: () => db.exec("ROLLBACK")
})

interface Query {
  readonly sql: string
  readonly parameters: ReadonlyArray<any> // values of the adapter and of the program
}

/** Each statement takes time. The transaction has a separate connection, which ends with it. */
const asynchronous = (db: DatabaseSync, pause: () => Promise<void>): Transaction => {
  const executeQuery = async ({ parameters, sql }: Query) => {
    await pause()
    return { rows: db.prepare(sql).all(...parameters) }
  }
  const end = async (sql: string): Promise<void> => {
    await pause()
    try {
      db.exec(sql)
    } finally {
      db.close()
    }
  }
  return {
    value: { isTransaction: true, executeQuery },
    write: async (delivery) => void (await executeQuery({ sql: insert, parameters: [delivery] })),
    commit: () => end("COMMIT"),
    rollback: () => end("ROLLBACK")
  }
}

/** Begins the transactions of one process. `isFull`: each commit is synced. */
export const make = (world: World, machine: Machine, { open }: Connections, isFull: boolean) => {
  let own: DatabaseSync | undefined
  const { name } = machine

  const connect = (): DatabaseSync => {
    const db = open("program", isFull)
    db.exec(`PRAGMA synchronous = ${isFull ? "FULL" : "NORMAL"}`)
    db.exec(table)
    return db
  }

  const pause = (): Promise<void> =>
    new Promise((resolve) => void machine.after(world.latency(`${name} program`), resolve))

  return (isAsynchronous: boolean): Transaction => {
    const db = isAsynchronous ? connect() : (own ??= connect())
    try {
      db.exec("BEGIN IMMEDIATE")
    } catch (error) {
      if (isAsynchronous) db.close()
      throw error
    }
    return isAsynchronous ? asynchronous(db, pause) : synchronous(db)
  }
}
