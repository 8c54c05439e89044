/** Opens a program's own transaction for statements of the adapter, after it has made sure that the transaction is one of this file. */
import { BrokerError, OptionKind } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { type Context, isLocked, toBrokerError } from "../toBrokerError.ts"
import * as Executor from "./executor.ts"
import { checkVersion } from "./schema.ts"
import type { Store } from "./store.ts"

/** Runs a statement that returns rows. It ends at once if the library is synchronous. */
export type Run = (
  sql: string,
  values: ReadonlyArray<Executor.Value>
) => Effect.Effect<ReadonlyArray<unknown>, BrokerError.BrokerError>

/** The error of a value that is no open transaction of the file. */
const unsupported = (context: Context, detail: string, remedy: string, cause?: unknown): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "sqlite", reason: "Unsupported", ...context, detail, remedy, cause })

const libraries = "node:sqlite, better-sqlite3, Drizzle on better-sqlite3, Kysely or Knex"

const unknown = (context: Context, value: unknown): BrokerError.BrokerError =>
  unsupported(
    context,
    `expected a transaction of ${libraries}, got ${OptionKind.show(value)}`,
    "Pass the connection, or the transaction that your library passes to your function"
  )

const ended = (context: Context, cause?: unknown): BrokerError.BrokerError =>
  unsupported(
    context,
    "no transaction is open",
    "Begin it before, end it after, and await every call of an asynchronous library",
    cause
  )

/** From an error of a statement. Only the program can make its connection wait for a lock. */
const failure = (context: Context, cause: unknown): BrokerError.BrokerError => {
  const error = toBrokerError(cause, context)
  if (!isLocked(cause)) return error
  const remedy = "Begin with BEGIN IMMEDIATE, and give your connection a busy timeout"
  return new BrokerError.BrokerError({
    ...context,
    broker: "sqlite",
    reason: error.reason,
    detail: error.detail,
    remedy,
    cause
  })
}

/** Runs a statement. In a synchronous transaction, an error must be thrown before the program goes on. */
const runner =
  ({ all }: Executor.Executor, onError: (cause: unknown) => BrokerError.BrokerError): Run =>
  (sql, values) =>
    Effect.suspend(() => {
      try {
        const rows = all(sql, values)
        return "then" in rows ? Effect.tryPromise({ try: () => rows, catch: onError }) : Effect.succeed(rows)
      } catch (cause) {
        return Effect.fail(onError(cause))
      }
    })

const mainFile = (rows: ReadonlyArray<unknown>): string => {
  const main = rows.find((row) => Predicate.hasProperty(row, "name") && row.name === "main")
  return Predicate.hasProperty(main, "file") ? String(main.file) : ""
}

/** Fails if the transaction is of another file, or the file of a newer adapter. */
const check = (
  executor: Executor.Executor,
  context: Context,
  { connected, isAt, settings }: Store
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    yield* Effect.try({
      try: () => checkVersion(connected(), context.operation),
      catch: (cause) => toBrokerError(cause, context)
    })
    const databases = yield* runner(executor, (cause) => ended(context, cause))("PRAGMA database_list", [])
    const file = mainFile(databases)
    if (isAt(file)) return
    return yield* unsupported(
      context,
      `the transaction is of ${file === "" ? "a database without a file" : file}, and the queues are in ${settings.path}`,
      "Open the file of the queues as the main database of your connection"
    )
  })

/**
 * Returns what runs statements in a transaction. It reads nothing in it: a transaction that has read before it writes fails if
 * another one has written meanwhile.
 */
export const open = (
  transaction: unknown,
  context: Context,
  store: Store
): Effect.Effect<Run, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const executor = Executor.of(transaction)
    if (executor === undefined) return yield* unknown(context, transaction)
    if (!executor.isOpen()) return yield* ended(context)
    const { connection } = executor
    if (connection === undefined || !store.checked.has(connection)) {
      yield* check(executor, context, store)
      if (connection !== undefined) store.checked.add(connection)
    }
    return runner(executor, (cause) => failure(context, cause))
  })
