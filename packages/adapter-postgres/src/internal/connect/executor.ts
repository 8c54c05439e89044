/**
 * Runs statements in a program's transaction. It recognises the library by the shape of the value, and imports none.
 *
 * - `pg`: the client, between BEGIN and COMMIT
 * - postgres.js, Drizzle, Kysely, Knex, Prisma: the value that the library passes to the transaction's function
 * - Effect's SqlClient: the value of its `transactionService`
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { query, type Row } from "../client.ts"

/** Text and bytes only, because each library writes arrays, numbers and JSON differently. */
export type Value = string | Buffer

export interface Executor {
  /** Lives as long as the transaction, or longer. */
  readonly connection: object
  readonly query: (text: string, values: ReadonlyArray<Value>) => Promise<ReadonlyArray<Row>>
}

type Rows = ReadonlyArray<object>

interface Pg {
  readonly query: (query: object) => Promise<{ readonly rows: ReadonlyArray<Row> }>
}

interface PostgresJs {
  readonly unsafe: (text: string, values: ReadonlyArray<Value>) => Promise<Rows>
}

interface Kysely {
  readonly executeQuery: (query: object) => Promise<{ readonly rows: Rows }>
}

interface Knex {
  readonly raw: (text: string, values: ReadonlyArray<Value>) => Promise<{ readonly rows: Rows }>
}

interface Prisma {
  readonly $queryRawUnsafe: (text: string, ...values: ReadonlyArray<Value>) => Promise<Rows>
}

interface SqlConnection {
  readonly executeValuesUnprepared: (
    text: string,
    values: ReadonlyArray<Value>
  ) => Effect.Effect<ReadonlyArray<Row>, unknown>
}

const has = (value: unknown, ...methods: ReadonlyArray<string>): boolean =>
  methods.every((method) => Predicate.hasProperty(value, method) && typeof value[method] === "function")

/** A pool may run each query on another connection. It has no `connectionParameters`. */
const isPg = (value: unknown): value is Pg & object =>
  has(value, "query") && Predicate.hasProperty(value, "connectionParameters")

/** Only transactions have savepoints. */
const isPostgresJs = (value: unknown): value is PostgresJs & object => has(value, "unsafe", "savepoint")
const isKysely = (value: unknown): value is Kysely & object => has(value, "executeQuery", "selectFrom")
const isKnex = (value: unknown): value is Knex & object => typeof value === "function" && has(value, "raw")
const isPrisma = (value: unknown): value is Prisma & object => has(value, "$queryRawUnsafe")
const isSqlConnection = (value: unknown): value is SqlConnection & object => has(value, "executeValuesUnprepared")

/** A library may have changed the names of the columns. */
const valuesOf = (rows: Rows): ReadonlyArray<Row> => rows.map((row) => Object.values(row))

/** A query as Kysely compiles it from a template without parts. */
const compiled = (sql: string, parameters: ReadonlyArray<Value>) => ({
  sql,
  parameters,
  query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
  queryId: { queryId: "requeue" }
})

const parameter = /\$(\d)/g

/** Knex numbers the parameters itself. */
const ofKnex = (text: string, values: ReadonlyArray<Value>): readonly [string, ReadonlyArray<Value>] => [
  text.replaceAll(parameter, "?"),
  [...text.matchAll(parameter)].map(([, number]) => values[Number(number) - 1]!)
]

/** The connection inside a transaction: that of Drizzle, or the first member of the service of Effect's SqlClient. */
const inner = (value: unknown): unknown => {
  if (Array.isArray(value)) return value[0]
  return Predicate.hasProperty(value, "session") && Predicate.hasProperty(value.session, "client")
    ? value.session.client
    : undefined
}

/** Returns the executor of a transaction; `undefined` for any other value. */
export const of = (value: unknown): Executor | undefined => {
  const run = runOf(value)
  if (run !== undefined) return { connection: value as object, query: run } // It has methods.
  const connection = inner(value)
  return connection === undefined ? undefined : of(connection)
}

const runOf = (value: unknown): Executor["query"] | undefined => {
  if (isPg(value)) return async (text, values) => (await value.query(query(text, values))).rows
  if (isPostgresJs(value)) return async (text, values) => valuesOf(await value.unsafe(text, values))
  if (isKysely(value)) {
    return async (text, values) => valuesOf((await value.executeQuery(compiled(text, values))).rows)
  }
  if (isKnex(value)) return async (text, values) => valuesOf((await value.raw(...ofKnex(text, values))).rows)
  if (isPrisma(value)) return async (text, values) => valuesOf(await value.$queryRawUnsafe(text, ...values))
  if (isSqlConnection(value)) {
    return (text, values) => Effect.runPromise(value.executeValuesUnprepared(text, values))
  }
  return undefined
}
