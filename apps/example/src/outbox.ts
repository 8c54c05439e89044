/** The database of the program that accepts webhooks: one transaction stores them and sends them. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { Requeue } from "@requeue/core/promise"
import type { Webhook } from "./payloads.ts"
import { queue } from "./policy.ts"

export interface Outbox extends Disposable {
  /** The address of the database, whose outbox has the messages until a relay publishes them. */
  readonly url: string
  /** Stores and sends webhooks, all or none. Throws if one is stored already. */
  readonly accept: (requeue: Pick<Requeue, "within">, webhooks: ReadonlyArray<Webhook>) => void
  /** The number of stored webhooks. */
  readonly count: () => number
}

/** Milliseconds to wait while another connection writes. */
const timeout = 10_000

/** Makes the database, in a folder that is removed at the end. */
export const openOutbox = (): Outbox => {
  const folder = mkdtempSync(join(tmpdir(), "requeue-demo-"))
  const path = join(folder, "webhooks.db")
  const db = new DatabaseSync(path, { timeout })
  db.exec("PRAGMA journal_mode = WAL; CREATE TABLE webhook (id TEXT PRIMARY KEY, event TEXT NOT NULL)")
  const insert = db.prepare("INSERT INTO webhook VALUES (?, ?)")
  const count = db.prepare("SELECT count(*) AS count FROM webhook")
  return {
    url: `sqlite:${path}`,
    accept: (requeue, webhooks) => {
      db.exec("BEGIN IMMEDIATE")
      try {
        for (const { headers, id } of webhooks) insert.run(id, headers["x-github-event"]!)
        // Synchronous, as the transaction is: it resolves at once, or throws.
        void requeue.within(db).sendBatch(queue, webhooks)
        db.exec("COMMIT")
      } catch (error) {
        db.exec("ROLLBACK")
        throw error
      }
    },
    count: () => Number(count.get()!["count"]),
    [Symbol.dispose]: () => {
      db.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
