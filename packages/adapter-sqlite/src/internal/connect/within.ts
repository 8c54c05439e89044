/**
 * Opens a program's own transaction for statements of the adapter, after it has made sure that the transaction is one of this file
 * and of this copy of SQLite.
 */
import { BrokerError, OptionKind } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { type Context, errors, isLocked, toBrokerError } from "../toBrokerError.ts"
import * as Executor from "./executor.ts"
import { checkVersion } from "./schema.ts"
import type { Store } from "./store.ts"

/** Runs a statement that returns rows. It ends at once if the library is synchronous. */
export type Run = (
  sql: string,
  values: ReadonlyArray<Executor.Value>
) => Effect.Effect<Executor.Rows, BrokerError.BrokerError>

const libraries = "node:sqlite, or of Drizzle, Kysely or Knex on node:sqlite"

const unknown = (context: Context, value: unknown): BrokerError.BrokerError =>
  errors.notTransaction(
    context,
    `expected a transaction of ${libraries}, got ${OptionKind.show(value)}`,
    "Pass the connection, or the transaction that your library passes to your function"
  )

const ended = (context: Context, cause?: unknown): BrokerError.BrokerError =>
  errors.notTransaction(
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

/** The values of all rows. A library may have changed the names of the columns, or return a row as an array. */
const valuesOf = (rows: Executor.Rows): ReadonlyArray<ReadonlyArray<unknown>> => rows.map((row) => Object.values(row))

/**
 * The statements that identify a copy of SQLite: its sources, and how it was compiled. They do not read the file. Copies in a process
 * do not see each other's locks, and overwrite each other's commits: https://www.sqlite.org/howtocorrupt.html, 2.2.1.
 */
const identity = ["SELECT sqlite_source_id()", "PRAGMA compile_options"]

const otherCopy = (context: Context): BrokerError.BrokerError =>
  errors.notTransaction(
    context,
    "the transaction is of another copy of SQLite, such as that of better-sqlite3, and the two copies would overwrite each other's commits",
    `Open the file only with node:sqlite: see "Effects once on one machine" in the README of @requeue/adapter-sqlite`
  )

/** Fails if the transaction is of another copy of SQLite or another file, or the file of a newer adapter. */
const check = (
  executor: Executor.Executor,
  context: Context,
  { connected, isAt, settings }: Store
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const ours = yield* Effect.try({
      try: () => {
        checkVersion(connected(), context.operation)
        return identity.map((sql) => String(valuesOf(connected().prepare(sql).all())))
      },
      catch: (cause) => toBrokerError(cause, context)
    })
    const run = runner(executor, (cause) => ended(context, cause))
    for (const [index, sql] of identity.entries()) {
      if (String(valuesOf(yield* run(sql, []))) !== ours[index]) return yield* otherCopy(context)
    }
    const main = valuesOf(yield* run("PRAGMA database_list", [])).find(([, name]) => name === "main")
    const file = String(main?.[2] ?? "")
    if (isAt(file)) return
    return yield* errors.notTransaction(
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
