/** Mutants of the adapter for SQLite that worlds find. */
import type { Mutant } from "../mutants/Mutant.ts"

/** A mutant, the first seed in which it breaks a law, and that law. */
export interface Planted extends Mutant {
  readonly seed: number
  readonly law: string
}

const adapter = (file: string): string => `adapter-sqlite/src/internal/${file}.ts`

export const mutants: ReadonlyArray<Planted> = [
  {
    name: "an ack in a transaction does not need the lease",
    file: adapter("settle/ackWithin"),
    from: "if (removed.length < handles.length) return yield* leaseLost(context)",
    to: "",
    seed: 15,
    law: "transactions"
  },
  {
    name: "sends in a transaction are committed by the adapter",
    file: adapter("publish/publishWithin"),
    from: "for (const chunk of chunksOf(messages)) {",
    to: `for (const chunk of chunksOf(messages)) {
      const run = (connection) => chunk.forEach((message) => Rows.insert(connection, toRow(message, store.now())))
      store.add({ operation: "publish", queue: "receipts", weight: 1, run, end: () => {} })
      continue`,
    seed: 1,
    law: "transactions"
  },
  {
    name: "leases end a second early",
    file: adapter("rows"),
    from: "WHERE ${isLeased} AND leased <= ?`).run",
    to: "WHERE ${isLeased} AND leased <= ? + 1000`).run",
    seed: 4,
    law: "leases"
  },
  {
    name: "messages are due after half of their delay",
    file: adapter("rows"),
    from: "Math.ceil(now + delay)",
    to: "Math.ceil(now + delay / 2)",
    seed: 3,
    law: "early"
  },
  {
    name: "a message is removed without its dead letter",
    file: adapter("settle/settle"),
    from: "return Rows.replace(connection, receipt, command)",
    to: 'return Rows[command.queue === "work" ? "replace" : "remove"](connection, receipt, command)',
    seed: 1,
    law: "books"
  },
  {
    name: "a send is confirmed before it is on the disk",
    file: adapter("publish/publisher"),
    from: "isDurable: true,",
    to: "isDurable: false,",
    seed: 4,
    law: "durability"
  },
  {
    name: "jobs whose commit failed succeed after that",
    file: adapter("connect/transactions"),
    from: "rollBack(current)\n      for (const each of group) fail(each, cause)\n      return\n",
    to: "rollBack(current)\n      for (const each of group) fail(each, cause)\n",
    seed: 27,
    law: "double run"
  },
  {
    name: "a retry keeps the count of deliveries",
    file: adapter("rows"),
    from: "leased = ${free}, deliveries = 0 WHERE",
    to: "leased = ${free} WHERE",
    seed: 3,
    law: "attempts"
  }
]
