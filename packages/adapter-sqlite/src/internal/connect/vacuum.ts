/** Returns the disk space of removed messages to the file system, a little in each transaction. */
import type { Connection } from "./connection.ts"
import type { Transactions } from "./transactions.ts"

/** The most pages of one transaction: a MiB. */
const step = 256

/** Fewer unused pages than these stay for the next messages. */
const least = 1024

const number = ({ prepare }: Connection, pragma: string): number =>
  Number(Object.values(prepare(`PRAGMA ${pragma}`).get() ?? {})[0])

/** Whether more than half of a file is unused. A file whose tables are older than Requeue's cannot shrink: `auto_vacuum` is 0. */
const isDue = (connection: Connection): boolean => {
  const free = number(connection, "freelist_count")
  return free > least && free * 2 > number(connection, "page_count") && number(connection, "auto_vacuum") === 2
}

/** Shrinks the file until less than half of it is unused. */
export const vacuum = (connection: Connection, add: Transactions["add"]): void => {
  if (!isDue(connection)) return
  add({
    operation: "vacuum",
    weight: step,
    run: ({ db }) => db.exec(`PRAGMA incremental_vacuum(${step})`),
    end: (error) => {
      if (error === undefined) vacuum(connection, add)
    }
  })
}
