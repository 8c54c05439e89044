/** Opens a program's transaction for the adapter's statements, after it has checked that the transaction is in this database. */
import { type BrokerError, OptionKind } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Row } from "../client.ts"
import { type Context, errors, stateOf, toBrokerError } from "../toBrokerError.ts"
import * as Executor from "./executor.ts"
import type { Store } from "./store.ts"

/** Runs a statement. */
export type Run = (
  text: string,
  values: ReadonlyArray<Executor.Value>
) => Effect.Effect<ReadonlyArray<Row>, BrokerError.BrokerError>

const unknown = (context: Context, value: unknown): BrokerError.BrokerError =>
  errors.notTransaction(
    context,
    `expected a transaction of pg, postgres.js, Drizzle, Kysely, Knex, Prisma or Effect's SqlClient, got ${OptionKind.show(value)}`,
    "Pass the value that your library passes to the transaction's function, or the client of pg on which you ran BEGIN"
  )

const ended = (context: Context, cause: unknown): BrokerError.BrokerError =>
  errors.notTransaction(context, "no transaction is open", "Begin it before, end it after, and await every call", cause)

const aborted = (context: Context, cause: unknown): BrokerError.BrokerError =>
  errors.notTransaction(
    context,
    "a statement of the transaction has failed, and it can only be rolled back",
    "Roll it back, and throw the error of that statement",
    cause
  )

const elsewhere = (context: Context, cause?: unknown): BrokerError.BrokerError =>
  errors.notTransaction(
    context,
    "the transaction is in another database than the queues",
    "Pass a connection to the database of the broker's URL",
    cause
  )

/** From an error of the statement that enters the transaction. */
const refusal = (context: Context, cause: unknown): BrokerError.BrokerError => {
  switch (stateOf(cause)) {
    case undefined:
    case "25P01":
      return ended(context, cause)
    case "25P02":
      return aborted(context, cause)
    case "3F000":
    case "42P01":
      return elsewhere(context, cause)
    default:
      return toBrokerError(cause, context)
  }
}

/**
 * Returns the executor of a transaction. It takes the same lock of the table as later statements: the server refuses that outside of a
 * transaction.
 */
export const open = (
  transaction: unknown,
  context: Context,
  store: Store
): Effect.Effect<Run, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const executor = Executor.of(transaction)
    if (executor === undefined) return yield* unknown(context, transaction)
    const { statements } = store
    yield* Effect.tryPromise({
      try: () => executor.query(statements.enter, []),
      catch: (cause) => refusal(context, cause)
    })
    const run: Run = (text, values) =>
      Effect.tryPromise({
        try: () => executor.query(text, values),
        catch: (cause) => toBrokerError(cause, context)
      })
    if (!store.checked.has(executor.connection)) {
      const found = yield* run(statements.identity, [])
      if (String(found[0]) !== (yield* store.identity)) return yield* elsewhere(context)
      store.checked.add(executor.connection)
    }
    return run
  })
