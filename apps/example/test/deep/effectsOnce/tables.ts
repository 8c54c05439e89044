/** The program's own tables, one for each queue. They have no unique key, so a second effect is a second row. */
import { DatabaseSync } from "node:sqlite"
import { Client, Pool } from "pg"
import type { Step } from "./orders.ts"

type Table = "effect" | "receipt"

const tables: ReadonlyArray<Table> = ["effect", "receipt"]

/** What a handler does before it commits. `database` is the transaction. */
export interface Actions {
  readonly within: (database: unknown) => unknown
  readonly table: Table
  readonly of: number
  readonly send: (database: unknown) => unknown
}

/** Runs the actions of a handler. `reach` is called before each of them. */
export interface Tables {
  /** In a transaction, with `within`. */
  readonly commit: (actions: Actions, reach: (step: Step) => void) => Promise<void>
  /** One after the other, without `within`. */
  readonly write: (actions: Actions, reach: (step: Step) => void) => Promise<void>
  readonly close: () => Promise<void>
}

const insert = (table: Table, value: string): string => `INSERT INTO ${table} (of) VALUES (${value})`

const ofSqlite = (path: string): Tables => {
  const db = new DatabaseSync(path, { timeout: 60_000 })
  return {
    commit: async ({ of, send, table, within }, reach) => {
      db.exec("BEGIN IMMEDIATE")
      try {
        reach("before within")
        void within(db)
        reach("before the row")
        db.prepare(insert(table, "?")).run(of)
        reach("before the send")
        void send(db)
        reach("before COMMIT")
        db.exec("COMMIT")
      } catch (error) {
        db.exec("ROLLBACK")
        throw error
      }
    },
    write: async ({ of, send, table }, reach) => {
      reach("before the row")
      db.prepare(insert(table, "?")).run(of)
      reach("before the send")
      await send(undefined)
    },
    close: async () => db.close()
  }
}

const ofPostgres = (url: string): Tables => {
  const pool = new Pool({ connectionString: url, max: 20 })
  // Otherwise, a lost connection ends the process.
  pool.on("error", () => {}).on("connect", (client) => client.on("error", () => {}))
  return {
    commit: async ({ of, send, table, within }, reach) => {
      const client = await pool.connect()
      let isBroken = true
      try {
        await client.query("BEGIN")
        reach("before within")
        await within(client)
        reach("before the row")
        await client.query(insert(table, "$1"), [of])
        reach("before the send")
        await send(client)
        reach("before COMMIT")
        const committed = client.query("COMMIT")
        reach("in COMMIT")
        await committed
        isBroken = false
      } finally {
        client.release(isBroken)
      }
    },
    write: async ({ of, send, table }, reach) => {
      reach("before the row")
      await pool.query(insert(table, "$1"), [of])
      reach("before the send")
      await send(undefined)
    },
    close: () => pool.end()
  }
}

const pathOf = (url: string): string | undefined =>
  url.startsWith("sqlite:") ? url.slice("sqlite:".length) : undefined

export const open = (url: string): Tables => {
  const path = pathOf(url)
  return path === undefined ? ofPostgres(url) : ofSqlite(path)
}

/** Runs a statement on a connection of its own, and returns its rows. */
const query = async (url: string, text: string): Promise<ReadonlyArray<Readonly<Record<string, unknown>>>> => {
  const path = pathOf(url)
  if (path !== undefined) {
    const db = new DatabaseSync(path, { timeout: 60_000 })
    const rows = db.prepare(text).all()
    db.close()
    return rows
  }
  const client = new Client(url).on("error", () => {})
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

export const create = async (url: string): Promise<void> => {
  for (const table of tables) await query(url, `CREATE TABLE ${table} (of integer)`)
}

/** Returns the rows of a table. */
export const read = async (url: string, table: Table): Promise<ReadonlyArray<number>> =>
  (await query(url, `SELECT of FROM ${table}`)).map(({ of }) => Number(of))
