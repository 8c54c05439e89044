/** Opens a file, and refuses one that cannot be a queue. */
import { memory, type Settings } from "../../SqliteOptions.ts"
import type { Database, Driver, Statement } from "../client.ts"
import { errors } from "../toBrokerError.ts"
import { migrate } from "./schema.ts"

/** An open file. */
export interface Connection {
  readonly db: Database
  /** Returns a statement, which is compiled once. */
  readonly prepare: (sql: string) => Statement
  /** The queues that exist for sure in the running transaction. */
  readonly declared: Set<string>
}

/** File systems of networks by their `statfs` number: NFS, SMB, CIFS, SMB2, Ceph, AFS. */
const network: ReadonlySet<number> = new Set([0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x00c36400, 0x5346414f])

const local = "Put the file on a local disk. For several machines, use another broker"

/** Whether the file is on a file system whose locks and shared memory SQLite cannot rely on. */
const isRemote = (type: number | undefined): boolean => type !== undefined && network.has(type >>> 0)

/** Opens the file without changing it. Throws SQLite's errors, and `BrokerError`s. */
export const openOnly = ({ path }: Settings, driver: Driver): Connection => {
  if (path !== memory && isRemote(driver.fileSystem(path))) {
    throw errors.misconfigured(`${path} is on a network file system, where two machines could damage it`, local)
  }
  const db = driver.open(path)
  const statements = new Map<string, Statement>()
  const prepare = (sql: string): Statement => {
    const existing = statements.get(sql)
    if (existing !== undefined) return existing
    const statement = db.prepare(sql)
    statements.set(sql, statement)
    return statement
  }
  return { db, prepare, declared: new Set() }
}

/** The pages of a log that SQLite itself copies, in the event loop, because the thread could not: 40 MiB. */
const checkpointAt = 10_000

const configure = ({ durability, path }: Settings, { db }: Connection): void => {
  // Of a new file only, so it must come first. On any other file it would wait for the lock, and write.
  const isNew = db.prepare("PRAGMA page_count").get()?.["page_count"] === 0
  if (isNew) db.exec("PRAGMA auto_vacuum = INCREMENTAL")
  const mode = db.prepare("PRAGMA journal_mode = WAL").get()?.["journal_mode"]
  if (path !== memory && mode !== "wal")
    throw errors.misconfigured(`${path} is on a file system without shared memory`, local)
  db.exec(
    durability === "off"
      ? "PRAGMA synchronous = OFF"
      : `PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = ${checkpointAt}`
  )
}

/** Opens the file, and creates or migrates the tables. */
export const open = (settings: Settings, driver: Driver): Connection => {
  const connection = openOnly(settings, driver)
  try {
    configure(settings, connection)
    migrate(connection.db)
    return connection
  } catch (error) {
    connection.db.close()
    throw error
  }
}
