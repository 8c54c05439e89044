/**
 * The file: its tables, and one statement for each thing that is done to a message. Every statement is atomic, also beside
 * those of other processes. https://www.sqlite.org/isolation.html
 */
import type { Outgoing } from "@requeue/core/port"
import { Metadata } from "@requeue/core/port"
import { DatabaseSync } from "node:sqlite"

/** A message as it lies in the file. */
export interface Row {
  /** Its place in the queue; in-place retries and releases leave it as it is. */
  readonly seq: number
  readonly body: Uint8Array
  readonly headers: string
  /** Encoded; `null` for what a foreign producer sent. */
  readonly metadata: string | null
  /** Milliseconds since 1970. */
  readonly published: number
  readonly deliveries: number
}

const tables = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA foreign_keys = ON;
  CREATE TABLE IF NOT EXISTS queues (name TEXT PRIMARY KEY, most INTEGER);
  CREATE TABLE IF NOT EXISTS messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL REFERENCES queues ON DELETE CASCADE,
    body BLOB NOT NULL,
    headers TEXT NOT NULL,
    metadata TEXT,
    published INTEGER NOT NULL,
    due INTEGER NOT NULL,
    deliveries INTEGER NOT NULL DEFAULT 0,
    receipt TEXT,
    leased_until INTEGER NOT NULL DEFAULT 0,
    returns INTEGER NOT NULL DEFAULT 0
  );
  CREATE TRIGGER IF NOT EXISTS most AFTER UPDATE OF receipt ON messages
    WHEN NEW.receipt IS NULL AND (SELECT most FROM queues WHERE name = NEW.queue) IS NOT NULL
    BEGIN
      UPDATE messages SET returns = returns + 1 WHERE seq = NEW.seq;
      DELETE FROM messages WHERE seq = NEW.seq AND returns >= (SELECT most FROM queues WHERE name = NEW.queue);
    END;
  CREATE INDEX IF NOT EXISTS ready ON messages (queue, due, seq);
`

const columns = "seq, body, headers, metadata, published, deliveries"
const isReady = "queue = :queue AND due <= :now AND leased_until <= :now"

/** Opens the file, and makes it when it is not there. All times are in milliseconds since 1970. */
export const open = (path: string) => {
  const db = new DatabaseSync(path)
  db.exec(tables)
  const isDeclared = db.prepare("SELECT 1 FROM queues WHERE name = ?")
  const declare = db.prepare("INSERT OR IGNORE INTO queues (name) VALUES (?)")
  const declareLimited = db.prepare("INSERT INTO queues (name, most) VALUES (?, ?)")
  const most = db.prepare("SELECT most FROM queues WHERE name = ?")
  const remove = db.prepare("DELETE FROM queues WHERE name = ?")
  const insert = db.prepare(
    "INSERT INTO messages (queue, body, headers, metadata, published, due) VALUES (?, ?, ?, ?, ?, ?)"
  )
  const isAnyReady = db.prepare(`SELECT 1 FROM messages WHERE ${isReady} LIMIT 1`)
  const receive = db.prepare(
    `UPDATE messages SET deliveries = deliveries + 1, receipt = :receipt, leased_until = :until
     WHERE seq IN (SELECT seq FROM messages WHERE ${isReady} ORDER BY seq LIMIT :limit) RETURNING ${columns}`
  )
  const ack = db.prepare("DELETE FROM messages WHERE seq = :seq AND receipt = :receipt")
  const retry = db.prepare(
    `UPDATE messages SET metadata = :metadata, due = 0, deliveries = 0, receipt = NULL, leased_until = 0
     WHERE seq = :seq AND receipt = :receipt`
  )
  const release = db.prepare(
    `UPDATE messages SET due = :due, deliveries = deliveries - 1, receipt = NULL, leased_until = 0
     WHERE seq = :seq AND receipt = :receipt`
  )
  const giveBack = db.prepare(
    "UPDATE messages SET receipt = NULL, leased_until = 0 WHERE seq = :seq AND receipt = :receipt"
  )
  const extend = db.prepare(
    "UPDATE messages SET leased_until = :until WHERE seq = :seq AND receipt = :receipt AND leased_until > :now"
  )
  const list = db.prepare(`SELECT ${columns} FROM messages WHERE ${isReady} ORDER BY seq`)
  const purge = db.prepare(`DELETE FROM messages WHERE ${isReady}`)
  const count = db.prepare(
    `SELECT count(*) FILTER (WHERE ${isReady}) AS ready, count(*) FILTER (WHERE leased_until > :now) AS inFlight,
       count(*) FILTER (WHERE due > :now AND leased_until <= :now) AS delayed FROM messages WHERE queue = :queue`
  )
  return {
    declare: (queue: string) => void (isDeclared.get(queue) ?? declare.run(queue)),
    /** A queue that drops a message that is given back so often. Nobody but the harness makes one. */
    declareLimited: (queue: string, limit: number) => void declareLimited.run(queue, limit),
    /** Answers how often a message may be given back to a queue; `undefined` where it has none. */
    limitOf: (queue: string) => most.get(queue)?.["most"] ?? undefined,
    deleteQueue: (queue: string) => void remove.run(queue),
    publish: ({ body, delay, headers, metadata, queue }: Outgoing.Outgoing, now: number) =>
      void insert.run(queue, body, JSON.stringify(headers), Metadata.encode(metadata), now, delay && now + delay),
    publishRaw: (queue: string, body: Uint8Array, headers: object, now: number) =>
      void insert.run(queue, body, JSON.stringify(headers), null, now, 0),
    /** Leases messages to this receipt. The order in which the statement returns them is not that of the queue. */
    receive: (wanted: { queue: string; receipt: string; now: number; until: number; limit: number }) => {
      // Most looks find nothing, and a read is cheap: an update locks the file.
      if (isAnyReady.get({ queue: wanted.queue, now: wanted.now }) === undefined) return []
      return rows(receive.all(wanted)).toSorted((a, b) => a.seq - b.seq)
    },
    /** The others answer whether the receipt is still that of the message. */
    ack: (held: Held) => ack.run({ ...held }).changes === 1,
    retry: (held: Held, metadata: Metadata.Metadata) =>
      retry.run({ ...held, metadata: Metadata.encode(metadata) }).changes === 1,
    release: (held: Held, due: number) => release.run({ ...held, due }).changes === 1,
    giveBack: (held: Held) => giveBack.run({ ...held }).changes === 1,
    extend: (held: Held, until: number, now: number) => extend.run({ ...held, until, now }).changes === 1,
    list: (queue: string, now: number) => rows(list.all({ queue, now })),
    purge: (queue: string, now: number) => Number(purge.run({ queue, now }).changes),
    count: (queue: string, now: number) => {
      const { delayed, inFlight, ready } = count.get({ queue, now }) ?? {}
      return { ready: Number(ready), inFlight: Number(inFlight), delayed: Number(delayed) }
    },
    /** Whether each commit is on the disk before it returns. */
    isSynced: () => Number(db.prepare("PRAGMA synchronous").get()?.["synchronous"]) >= 2,
    close: () => db.close()
  }
}

/** A file that is open. */
export type File = ReturnType<typeof open>

/** A message, and the receipt of one delivery of it. */
export interface Held {
  readonly seq: number
  readonly receipt: string
}

const rows = (found: ReadonlyArray<object>) => found as ReadonlyArray<Row> // the columns of the statement
