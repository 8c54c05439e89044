/** Copies a log into its file, and begins it again. */

/** The part of a connection that it uses. */
interface Database {
  readonly exec: (sql: string) => void
  readonly prepare: (sql: string) => { readonly get: () => Record<string, unknown> | undefined }
}

/**
 * Returns whether no other connection prevented it. A log with fewer `pages` does not begin again. It runs in a thread, as its
 * text, so it uses nothing outside of itself, and has no functions inside: bundlers change both.
 *
 * The first copy leaves writers alone. The second one, of what they have written meanwhile, makes them wait. The next commit begins
 * the log again and syncs its header. It is made here and changes nothing: made by a writer, it would block the event loop. A writer
 * is rarely faster. https://www.sqlite.org/pragma.html#pragma_wal_checkpoint
 */
export const checkpoint = (db: Database, pages: number): boolean => {
  // A connection has no log before it has read. FULL would sync the commit below, too.
  db.exec("PRAGMA synchronous = NORMAL; SELECT 1 FROM sqlite_schema")
  const copied = db.prepare("PRAGMA wal_checkpoint(PASSIVE)").get()
  if (copied?.["log"] !== copied?.["checkpointed"]) return false
  // Another process has begun it again, or works on it.
  if (Number(copied?.["log"]) < pages) return true
  const restarted = db.prepare("PRAGMA wal_checkpoint(RESTART)").get()
  if (restarted?.["busy"] !== 0) return false
  db.exec("BEGIN IMMEDIATE")
  const version = db.prepare("PRAGMA user_version").get()?.["user_version"]
  db.exec(`PRAGMA user_version = ${Number(version)}; COMMIT`)
  return true
}
