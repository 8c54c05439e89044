/**
 * Transactions of the memory broker: acks and sends that happen together, or not at all.
 *
 * When to use: to test handlers that call `message.within` and `requeue.within` without a database. Pass a transaction where the
 * handler gets that of its database, and write the handler's own effects in {@link Transaction.onCommit}.
 *
 * @example
 * ```ts
 * import { MemoryTransaction } from "@requeue/adapter-memory"
 * import * as Testing from "@requeue/adapter-memory/testing"
 *
 * await using broker = await Testing.open()
 * const paid: Array<string> = []
 * await broker.requeue.consume("payments", {}, (message) =>
 *   MemoryTransaction.run(async (transaction) => {
 *     await message.within(transaction)
 *     transaction.onCommit(() => paid.push(message.id))
 *     await broker.requeue.within(transaction).send("receipts", { of: message.id })
 *     if (message.attempts === 1) throw new Error("rolled back")
 *   })
 * )
 * await broker.requeue.send("payments", { amount: 5 }, { id: "p1" })
 * await broker.waitUntilIdle()
 * paid // => ["p1"]
 * const receipts = await broker.sent("receipts")
 * receipts.length // => 1
 * ```
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { Changes, type Transaction } from "./internal/transaction.ts"

export type { Transaction } from "./internal/transaction.ts"

/** Begins a transaction. */
export const make = (): Transaction => new Changes()

/** Runs a function in a transaction: commits when it succeeds, and rolls back when it fails. */
export const run = async <A>(body: (transaction: Transaction) => PromiseLike<A> | A): Promise<A> => {
  const transaction = make()
  try {
    const result = await body(transaction)
    transaction.commit()
    return result
  } catch (error) {
    transaction.rollback()
    throw error
  }
}

/** Runs an Effect in a transaction, as {@link run} does. A failed commit is a defect. */
export const runEffect = <A, E, R>(
  body: (transaction: Transaction) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(Effect.sync(make), body, (transaction, exit) =>
    Effect.sync(() => (Exit.isSuccess(exit) ? transaction.commit() : transaction.rollback()))
  )
