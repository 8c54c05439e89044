/** The tables, and how older files get them. The names leave room for a program's own tables in the same file. */
import type { BrokerError } from "@requeue/core/port"
import type { Database } from "../client.ts"
import { errors } from "../toBrokerError.ts"

/**
 * The value of `leased` without a lease. It takes as many bytes as a time: a lease that changed the size of its row would rewrite the
 * whole body. https://www.sqlite.org/fileformat2.html#record_format
 */
export const free = 2 ** 47 - 1

/** The value of `leased` of a message that waits for an earlier message of its key. It takes as many bytes, too. */
export const blocked = free - 1

/** The least and the largest token. All take as many bytes, too. */
export const tokens = { least: 2 ** 24, most: 2 ** 31 - 1 }

/** Conditions of a row. Those of the indices are the same, so that SQLite uses them. */
export const isFree = `leased = ${free}`
export const isBlocked = `leased = ${blocked}`
export const isLeased = `leased < ${blocked}`

/** Without `fairBy`, and with it: of each, the free messages have an index in the order of their times. */
export const isUnshared = `${isFree} AND fair_by IS NULL`
export const isShared = `${isFree} AND fair_by IS NOT NULL`

/**
 * The order of messages with a key, as triggers, so it holds for every program that writes to the file. Of each lane and key, one
 * message is free or leased, and the others are blocked.
 *
 * - The row of another program has no metadata, and only a `key`: its lane is that of its queue.
 * - A row that enters a lane is blocked if the lane has another of its key.
 * - A row that leaves its lane, because it is deleted or has no lane any more, frees the next one.
 */
const order = (() => {
  const block = `UPDATE requeue_message SET leased = ${blocked} WHERE seq = NEW.seq AND EXISTS (
       SELECT 1 FROM requeue_message WHERE lane = NEW.lane AND key = NEW.key AND seq <> NEW.seq)`
  const freeNext = `UPDATE requeue_message SET leased = ${free} WHERE seq = (
       SELECT seq FROM requeue_message WHERE lane = OLD.lane AND key = OLD.key ORDER BY coalesce(position, seq), seq LIMIT 1)`
  const after = (name: string, event: string, condition: string, action: string): string =>
    `CREATE TRIGGER requeue_${name} AFTER ${event} ON requeue_message WHEN ${condition} BEGIN ${action}; END;`
  const setLane = "UPDATE requeue_message SET lane = NEW.queue WHERE seq = NEW.seq"
  const wasFirst = `OLD.lane IS NOT NULL AND OLD.leased <> ${blocked}`
  return [
    after("foreign", "INSERT", "NEW.key IS NOT NULL AND NEW.lane IS NULL AND NEW.metadata IS NULL", setLane),
    after("inserted", "INSERT", `NEW.lane IS NOT NULL AND NEW.leased = ${free}`, block),
    after("entered", "UPDATE OF lane", "OLD.lane IS NULL AND NEW.lane IS NOT NULL", block),
    after("deleted", "DELETE", wasFirst, freeNext),
    after("left", "UPDATE OF lane", `${wasFirst} AND NEW.lane IS NULL`, freeNext)
  ].join("\n")
})()

/**
 * The steps from each version to the next; a file's version is the number of steps that it has. Only add steps.
 *
 * - `at`: when the message is due; for one without a delay, when it became ready. Epoch milliseconds.
 * - `leased`: when the lease of its delivery ends; `free`: it is in no consumer's hands.
 * - `token`: differs for each lease, also after a backup was restored. A settlement with another one does nothing.
 * - `deliveries`: of this copy. `metadata`: NULL for a foreign message. `headers`: JSON; NULL: none.
 * - `key`: NULL: none. `lane`: the queue in whose order the message has its place; NULL: in none, as most dead letters.
 * - `position`: in its lane; NULL: `seq`. The copy of a dead letter has that of its original.
 * - `fair_by`: whose message it is; NULL: no one's.
 * - `requeue_inbox`: the messages of other brokers that a transaction has done, and when.
 * - `requeue_delivered`: how many messages of a share were delivered at a time, until no window of their consumer has them.
 *
 * CHECK, because one number that JavaScript cannot hold would stop the consumers of its queue.
 * AUTOINCREMENT, because a number that is used again could name another message.
 */
export const steps: ReadonlyArray<string> = [
  `CREATE TABLE requeue_queue (name TEXT PRIMARY KEY) WITHOUT ROWID, STRICT;
   CREATE TABLE requeue_message (
     seq INTEGER PRIMARY KEY AUTOINCREMENT,
     queue TEXT NOT NULL,
     at INTEGER NOT NULL,
     leased INTEGER NOT NULL DEFAULT ${free},
     token INTEGER NOT NULL DEFAULT ${tokens.least},
     deliveries INTEGER NOT NULL DEFAULT 0,
     metadata TEXT,
     headers TEXT,
     body BLOB NOT NULL,
     CHECK (min(at, leased, token, deliveries) >= 0 AND max(seq, at, leased, token, deliveries) < 9007199254740991)
   ) STRICT;
   CREATE INDEX requeue_ready ON requeue_message (queue, at, seq) WHERE ${isFree};
   CREATE INDEX requeue_leased ON requeue_message (leased) WHERE leased < ${free};`,
  `CREATE TABLE requeue_inbox (
     queue TEXT NOT NULL,
     id TEXT NOT NULL,
     at INTEGER NOT NULL,
     PRIMARY KEY (queue, id)
   ) WITHOUT ROWID, STRICT;
   CREATE INDEX requeue_inbox_at ON requeue_inbox (at);`,
  `ALTER TABLE requeue_message ADD COLUMN key TEXT;
   ALTER TABLE requeue_message ADD COLUMN lane TEXT;
   ALTER TABLE requeue_message ADD COLUMN position INTEGER CHECK (position BETWEEN 0 AND 9007199254740990);
   CREATE INDEX requeue_lane ON requeue_message (lane, key, coalesce(position, seq)) WHERE lane IS NOT NULL;
   DROP INDEX requeue_leased;
   CREATE INDEX requeue_leased ON requeue_message (leased) WHERE ${isLeased};
   ${order}`,
  `ALTER TABLE requeue_message ADD COLUMN fair_by TEXT CHECK (length(fair_by) BETWEEN 1 AND 200);
   DROP INDEX requeue_ready;
   CREATE INDEX requeue_ready ON requeue_message (queue, fair_by, at, seq) WHERE ${isFree};
   CREATE INDEX requeue_shared ON requeue_message (queue, at, seq) WHERE ${isShared};
   CREATE INDEX requeue_taken ON requeue_message (queue, fair_by) WHERE ${isLeased} AND fair_by IS NOT NULL;
   CREATE TABLE requeue_delivered (
     queue TEXT NOT NULL,
     fair_by TEXT NOT NULL,
     at INTEGER NOT NULL,
     until INTEGER NOT NULL,
     count INTEGER NOT NULL,
     PRIMARY KEY (queue, fair_by, at)
   ) WITHOUT ROWID, STRICT;
   CREATE INDEX requeue_delivered_until ON requeue_delivered (until);`
]

/** Returns the version of a file; 0: it has no tables of Requeue. */
export const versionOf = (db: Pick<Database, "prepare">): number => {
  const exists = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'requeue_schema'").get() !== undefined
  return exists ? Number(db.prepare("SELECT version FROM requeue_schema").get()?.["version"]) : 0
}

const tooNew = (version: number, operation: string): BrokerError.BrokerError =>
  errors.misconfigured(
    `the file has version ${version} of Requeue's tables, and this adapter supports ${steps.length}`,
    "Install the version of @requeue/adapter-sqlite that last opened the file, or a newer one",
    operation
  )

/** Throws if a newer adapter has migrated the file. Returns its version. */
export const checkVersion = (db: Pick<Database, "prepare">, operation: string, all = steps): number => {
  const version = versionOf(db)
  if (version > all.length) throw tooNew(version, operation)
  return version
}

/** Creates or migrates the tables in one transaction. Throws for a file of a newer adapter. */
export const migrate = (db: Database, all = steps): void => {
  if (checkVersion(db, "open", all) === all.length) return
  db.exec("BEGIN IMMEDIATE")
  try {
    // Another process may have migrated it meanwhile.
    const version = versionOf(db)
    if (version === 0)
      db.exec("CREATE TABLE requeue_schema (version INTEGER NOT NULL) STRICT; INSERT INTO requeue_schema VALUES (0)")
    for (const step of all.slice(version)) db.exec(step)
    db.prepare("UPDATE requeue_schema SET version = ?").run(Math.max(version, all.length))
    db.exec("COMMIT")
  } catch (error) {
    db.exec("ROLLBACK")
    throw error
  }
}
